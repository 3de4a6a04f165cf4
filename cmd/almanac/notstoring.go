package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// storeTrial bounds the look whether NATS stores, dialling included.
const storeTrial = 2 * time.Second

// NATS whose disk is full answers every question and stores nothing, mostly without a word: a verb that writes hears
// silence. A part of a batch that it did not write makes the rest of the batch incomplete.
const (
	codeIncomplete jetstream.ErrorCode = 10176
	codeNotStored  jetstream.ErrorCode = 10077
)

// notStored reports whether an error is what a verb hears of a NATS that cannot store.
func notStored(err error) bool {
	for _, is := range []error{streams.ErrCut, fronts.ErrUnknown, fronts.ErrStore, fronts.ErrCut, context.DeadlineExceeded, nats.ErrTimeout,
		nats.ErrNoResponders, jetstream.ErrJetStreamNotEnabled} {
		if errors.Is(err, is) {
			return true
		}
	}
	api := (*jetstream.APIError)(nil)
	return errors.As(err, &api) && (api.ErrorCode == codeIncomplete || api.ErrorCode == codeNotStored)
}

// explained returns why NATS stores nothing, with err, where that is why a verb failed; else err.
func explained(ctx context.Context, cmd *cobra.Command, err error) error {
	if err == nil || !notStored(err) || exitCode(err, nil) != exitFailed || ctx.Err() != nil || cmd.GroupID == groupRun {
		return err
	}
	s, failed := load(cmd)
	if failed != nil {
		return err
	}
	d, failed := findEndpoints(s, false)
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
	ctx, cancel := context.WithTimeout(ctx, storeTrial)
	defer cancel()
	address := privacy.MaskedURL(d.nats)
	nc, err := streams.Connect(d.nats, append(natsOptions(s, d, "cli"), nats.Timeout(storeTrial))...)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if err := streams.Stores(ctx, js); err != nil && ctx.Err() != nil {
		return fmt.Errorf("NATS at %s is there and stored nothing in %s: its disk may be full. Free space on it, then restart that server (`almanac up` does so by itself); `almanac doctor` looks at both", address, storeTrial)
	} else if err != nil {
		said, _ := translated(err)
		return fmt.Errorf("NATS at %s does not store: %s; `almanac doctor` says more", address, said)
	}
	return nil
}
