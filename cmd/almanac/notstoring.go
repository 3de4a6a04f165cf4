package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/send"
)

// explained returns why NATS stores nothing, with err, where that is why a verb failed; else err.
func explained(ctx context.Context, cmd *cobra.Command, err error) error {
	if err == nil || !send.NotStored(err) || exitCode(err, nil) != exitFailed || ctx.Err() != nil || cmd.GroupID == groupRun {
		return err
	}
	s, failed := load(cmd)
	if failed != nil {
		return err
	}
	d, failed := findEndpoints(s, natsAlone)
	if failed != nil {
		return err
	}
	if full := storing(ctx, s, d); full != nil {
		said, _ := translated(err)
		return fmt.Errorf("%w. Whether this was carried out is not known: look at it before you run it again. It said: %s", full, said)
	}
	return err
}

// storing returns why the NATS of a verb stores nothing now, with what to do; nil: it stores.
func storing(ctx context.Context, s *settings, d endpoints) error {
	if d.dir != "" {
		if err := embedded.NATSSpace(d.dir); errors.Is(err, embedded.ErrDiskSpace) {
			return fmt.Errorf("%w; free space there, and the NATS of `almanac up` stores again by itself", err)
		}
	}
	if err := lacked(ctx, s, d); err != nil {
		return err
	}
	words := func(err error) string { said, _ := translated(err); return said }
	return send.Try(ctx, d.nats, words, natsOptions(s, d, "cli")...)
}
