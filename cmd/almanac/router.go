package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/schemas"
)

func (a *app) routerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "router",
		Short: "Run one router, for production",
		Long: `Run one router against a NATS elsewhere. It creates streams and registry where
they are missing, and declares the topics of the settings file. Any number may
run: they share the lanes, and one that dies is taken over within 10 s.`,
		Example: `  almanac router --nats nats://nats-1:4222,nats-2:4222 --replicas 3`,
		Args:    arguments(0, 0),
		RunE:    a.does(a.router),
	}
	keyFlags(cmd.Flags(), "http", "replicas", "events_bytes", "shards_bytes", "docs_bytes", "timers_bytes")
	keyFlags(cmd.Flags(), drainKeys...)
	return cmd
}

func (a *app) router(ctx context.Context, cmd *cobra.Command, _ []string) error {
	return a.runSingle(ctx, cmd, "router", natsAlone, func(ctx context.Context, one *single) error {
		reg, err := one.setup(ctx, schemas.StreamEvents, schemas.StreamShards, schemas.KVStream)
		if err != nil {
			return err
		}
		if _, err := declareTopics(ctx, reg, one.s, one.log); err != nil {
			return err
		}
		r, err := newRouter(ctx, one.nc, reg, one.s.PIIKey, one.counts.router(), one.log)
		one.parts = []part{r}
		return err
	})
}
