package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// lookAgain is how often a copy that is being filled is looked at.
const lookAgain = 250 * time.Millisecond

// allStreams are those with copies.
var allStreams = append(slices.Clone(boundStreams), schemas.CopiesStream)

// streamsReplicate gives streams so many copies, and waits until they have all of it.
func (a *app) streamsReplicate(ctx context.Context, cmd *cobra.Command, copies int, names []string) error {
	switch {
	case cmd.Flags().Changed("bytes"):
		return usageError{fmt.Errorf("--replicas or --bytes, one at a time")}
	case copies != 1 && copies != 3 && copies != 5:
		return usageError{fmt.Errorf("--replicas %d: it is 1, 3 or 5, since a majority elects", copies)}
	}
	return whenNATS(ctx, cmd, func(c *session) error {
		for _, name := range names {
			if err := streams.Replicate(ctx, c.reg.JetStream(), streamNamed(name), copies); err != nil {
				return err
			}
		}
		for _, name := range names {
			if err := a.waitForCopies(ctx, c, name); err != nil {
				return err
			}
		}
		return a.streams(ctx, cmd, nil)
	})
}

// waitForCopies waits until each copy of a stream has all of it, and says how far they are.
func (a *app) waitForCopies(ctx context.Context, c *session, name string) error {
	for said := ""; ; {
		info, err := streams.Info(ctx, c.reg.JetStream(), streamNamed(name))
		if err != nil {
			return err
		}
		r := streams.ReplicasOf(info)
		if r.Whole() {
			return nil
		}
		if text := fmt.Sprintf("%s: %s, %d messages to go", name, r, r.Lag); text != said {
			a.note("%s", text)
			said = text
		}
		if err := backoff.Sleep(ctx, lookAgain); err != nil {
			return fmt.Errorf("%s: %s: %w; the servers go on with it", name, r, err)
		}
	}
}
