package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) sinkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sink",
		Short: "Run one sink, for production",
		Long: `Run one sink: it writes what the routers hand on into ClickHouse. Any number may
run: they share the shards, and one that dies is taken over within 10 s.`,
		Example: `  ALMANAC_CLICKHOUSE_FILE=/run/secrets/dsn almanac sink --nats nats://nats-1:4222`,
		Args:    arguments(0, 0),
		RunE:    a.does(a.sink),
	}
	keyFlags(cmd.Flags(), "http", "replay_window", "verify_every")
	keyFlags(cmd.Flags(), drainKeys...)
	return cmd
}

func (a *app) sink(ctx context.Context, cmd *cobra.Command, _ []string) error {
	return a.runSingle(ctx, cmd, "sink", bothServers, func(ctx context.Context, one *single) error {
		reg, err := registry.Open(ctx, one.nc)
		if err != nil {
			return err
		}
		db, err := openFixed(one.d)
		if err != nil {
			return err
		}
		one.later(func() { _ = db.Close() })
		one.servers.UseClickHouse(db)
		db.MeantFor(reg)
		one.accounts.of("clickhouse", grantsOf(db, access.ClickHouseUserOf(access.UserSink)))
		one.accounts.look(ctx) // what the start needs may be what is lacked
		if err := establish(ctx, db); err != nil {
			return err
		}
		one.probe = func(ctx context.Context) []ops.Reason {
			ofNATS := make(chan []ops.Reason, 1) // both servers at once: a probe has little patience
			go func() { ofNATS <- leaderTrouble(ctx, one.nc, schemas.StreamShards, schemas.KVStream) }()
			_, err := db.Ping(ctx)
			return append(<-ofNATS, clickHouseTrouble(err)...)
		}
		one.parts, err = newSinks(ctx, one.nc, reg, db, one.s, nil, one.counts, one.log)
		return err
	})
}
