package main

import (
	"context"

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
streams then.`,
		Example: `  ALMANAC_NATS=nats://setup:…@nats-1:4222 almanac setup --replicas 3`,
		Args:    arguments(0, 0),
		RunE:    a.does(a.setup),
	}
	keyFlags(cmd.Flags(), "replicas", "events_bytes", "shards_bytes", "docs_bytes", "timers_bytes")
	return cmd
}

func (a *app) setup(ctx context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	d, err := findEndpoints(s, false)
	if err != nil {
		return err
	}
	nc, err := streams.Connect(d.nats, natsOptions(s, d, "setup")...)
	if err != nil {
		return err
	}
	defer nc.Close()
	reg, err := registry.Setup(ctx, nc, streamLimits(s, schemas.DefaultStreamLimits))
	if err != nil {
		return err
	}
	topics, err := declare(ctx, reg, s, s.logger(a.stderr))
	if err == nil {
		a.note("streams and registry are there, on NATS %s: %s", nc.ConnectedAddr(), plural(len(topics), "topic"))
	}
	return err
}
