package send

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// trialTime bounds the look whether NATS stores, dialling included.
const trialTime = 2 * time.Second

// NATS whose disk is full answers every question and stores nothing, mostly without a word: who writes hears
// silence. A part of a batch that it did not write makes the rest of the batch incomplete.
const (
	codeIncomplete jetstream.ErrorCode = 10176
	codeNotStored  jetstream.ErrorCode = 10077
)

// NotStored reports whether an error is what a writer hears of a NATS that cannot store.
func NotStored(err error) bool {
	for _, is := range []error{streams.ErrCut, fronts.ErrUnknown, fronts.ErrStore, fronts.ErrCut, context.DeadlineExceeded, nats.ErrTimeout,
		nats.ErrNoResponders, jetstream.ErrJetStreamNotEnabled} {
		if errors.Is(err, is) {
			return true
		}
	}
	api := (*jetstream.APIError)(nil)
	return errors.As(err, &api) && (api.ErrorCode == codeIncomplete || api.ErrorCode == codeNotStored)
}

// Try returns why the NATS at an address stores nothing now, with what to do; nil: it stores, or the user may not try it. words puts what a
// library said as people read it.
func Try(ctx context.Context, address string, words func(error) string, opts ...nats.Option) error {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	nc, err := streams.Connect(address, append(opts, nats.Timeout(trialTime))...)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	shown := privacy.MaskedURL(address)
	if err := streams.Stores(ctx, js); errors.Is(err, streams.ErrDenied) {
		return nil // a user that may send alone cannot try it
	} else if err != nil && ctx.Err() != nil {
		return fmt.Errorf("NATS at %s is there and stored nothing in %s: its disk may be full. Free space on it, then restart that server (`almanac up` does so by itself); `almanac doctor` looks at both", shown, trialTime)
	} else if err != nil {
		return fmt.Errorf("NATS at %s does not store: %s; `almanac doctor` says more", shown, words(err))
	}
	return nil
}
