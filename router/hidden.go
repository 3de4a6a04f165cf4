package router

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A NATS server stores and acknowledges a message under a subject with the byte 0x7F, and
// lists it under no subject. No filter selects it, though a consumer of another subject
// may be given it by mistake. Such messages are strays: a sweep that finds more messages in
// EVENTS than its subjects have reads the whole stream for them.

// maxHidden bounds the messages of one sweep under subjects that the server does not list.
const maxHidden = 1000

// sweepHidden deals with the messages that the list of subjects does not count. held is how
// many messages EVENTS had before the list was read.
func (r *Router) sweepHidden(ctx context.Context, held uint64, listed map[string]uint64, topics map[string]*schemas.Topic) error {
	for _, n := range listed {
		held -= min(held, n)
	}
	if held == 0 {
		return nil
	}
	// The two were read one after the other: look again before the stream is read whole.
	if n, err := streams.Hidden(ctx, r.js, schemas.StreamEvents); err != nil || n == 0 {
		return err
	}
	found, n := map[string][]uint64{}, 0
	err := streams.EachHidden(ctx, r.js, schemas.StreamEvents, func(m *streams.Message) error {
		if n < maxHidden && (len(found) < maxUnroutableSources || found[m.Subject] != nil) {
			found[m.Subject] = append(found[m.Subject], m.Sequence)
			n++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	for _, subject := range slices.Sorted(maps.Keys(found)) {
		name, _, _, _ := schemas.EventsTokens(subject)
		if err := r.drain(ctx, unroutable{subjectSource(subject), topics[name]}, found[subject], false); err != nil {
			return err
		}
	}
	return nil
}

// eachOf reads messages of EVENTS by their sequences.
func (r *Router) eachOf(ctx context.Context, seqs []uint64, f func(*streams.Message) (bool, error)) error {
	for _, seq := range seqs {
		m, err := streams.DecideAt(ctx, r.js, schemas.StreamEvents, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // purged meanwhile
		}
		if err == nil {
			_, err = f(m)
		}
		if err != nil {
			return fmt.Errorf("router: message %d of %s: %w", seq, schemas.StreamEvents, err)
		}
	}
	return nil
}
