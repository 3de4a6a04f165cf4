package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) setupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Make streams and registry where they are missing, for production",
		Long: `Make streams and registry where they are missing, check those that are there, and
declare the topics of the settings file. It may run any number of times.

Where NATS has users it runs as the user setup. The parts need no right to make
streams then.

Where a ClickHouse is named, it refuses to make an empty registry beside tables that
have rows: the one that knew them was lost.`,
		Example: `  ALMANAC_NATS=nats://setup:…@nats-1:4222 almanac setup --replicas 3`,
		Args:    arguments(0, 0),
		RunE:    a.does(a.setup),
	}
	addFlags(cmd, switchFlag("registry-lost", "make streams and registry beside tables of a registry that was lost; then run almanac repair, before any part starts"))
	keyFlags(cmd.Flags(), "replicas", "events_bytes", "shards_bytes", "docs_bytes", "timers_bytes")
	return cmd
}

func (a *app) setup(ctx context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	d, err := findEndpoints(s, natsAlone)
	if err != nil {
		return err
	}
	nc, err := streams.Connect(d.nats, natsOptions(s, d, "setup")...)
	if err != nil {
		return err
	}
	defer nc.Close()
	if lost, _ := cmd.Flags().GetBool("registry-lost"); d.clickhouse != "" && !lost {
		if err := a.refuseSecond(ctx, nc, d); err != nil {
			return err
		}
	}
	reg, err := registry.Setup(ctx, nc, streamLimits(s, schemas.DefaultStreamLimits))
	if err != nil {
		return err
	}
	topics, err := declareTopics(ctx, reg, s, s.logger(a.stderr))
	if err == nil {
		a.note("streams and registry are there, on NATS %s: %s", nc.ConnectedAddr(), plural(len(topics), "topic"))
	}
	return err
}

// refuseSecond refuses where tables have rows of topics, and the registry on NATS knows no topic.
func (a *app) refuseSecond(ctx context.Context, nc *nats.Conn, d endpoints) error {
	reg, err := registry.Open(ctx, nc)
	if err == nil {
		topics, err := reg.Topics(ctx)
		if err != nil || len(topics) > 0 {
			return err
		}
	} else if !errors.Is(err, registry.ErrNoRegistry) || errors.Is(err, registry.ErrLost) {
		return err
	}
	db, err := openFixed(d)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	left, err := db.LostTopics(ctx, nil, func(context.Context) (map[schemas.Shard]bool, error) { return nil, nil })
	if err != nil || len(left) == 0 {
		return err
	}
	return fmt.Errorf("%w: ClickHouse at %s has rows of %s, and NATS at %s has no topic. Bring NATS's files back from a copy, or give the address of the right server. Where they are gone: "+
		"`almanac setup --registry-lost`, and then `almanac repair`, which fills the registry from ClickHouse, before any part starts",
		registry.ErrLost, db.Address(), strings.Join(left, ", "), nc.ConnectedUrlRedacted())
}
