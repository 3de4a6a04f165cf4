package streams

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Bounds of one request of Gather. The server stops at the first to trip; a client
// holds that much ahead of its reader.
const (
	readMessages = 1024
	readBytes    = 8 << 20
)

// Gather calls f with each message of a filter, from a sequence on, to the end as
// it stands when it gets there, or until f returns false. want, when not nil, says
// how many messages f will still take, to spare the stream the rest.
//
// Nil means complete: nothing was left out, and the end is the leader's word. What
// f was given counts only then. Any replica may give the messages, so each must
// prove what it is by what it says.
func Gather(ctx context.Context, js jetstream.JetStream, stream, filter string, from uint64, want func() int, f func(*Message) (bool, error)) error {
	g := gathering{js: js, stream: stream, filter: filter, from: max(from, 1), f: f}
	for failed := 0; !g.done; {
		n := readMessages
		if want != nil {
			n = max(1, min(n, want()))
		}
		before := g.from
		err := g.batch(ctx, n)
		if g.from > before {
			failed = 0
		}
		if errors.Is(err, ErrCut) && ctx.Err() == nil && !g.refused {
			if failed++; failed < tries {
				continue
			}
		}
		if g.refused {
			return g.err
		}
		if err != nil {
			return fmt.Errorf("streams: reading %s of %s: %w", filter, stream, err)
		}
	}
	return nil
}

// uncounted is the Pending of a message that the leader gave: it does not say.
const uncounted = math.MaxInt32

// gathering is one Gather under way.
type gathering struct {
	js             jetstream.JetStream
	stream, filter string
	from           uint64 // the next sequence to read
	upTo           uint64 // the leader's end, once a replica did not know it
	f              func(*Message) (bool, error)
	strange        uint64 // messages of this batch under subjects that the server does not index
	done           bool
	refused        bool // f returned err, which goes to the caller as it is
	err            error
}

func (g *gathering) take(m *Message) (more bool, err error) {
	if m.Sequence < g.from {
		return false, cut(context.Background(), fmt.Errorf("NATS gave message %d after %d", m.Sequence, g.from))
	}
	if g.from = m.Sequence + 1; !schemas.Indexed(m.Subject) && g.filter != "" {
		g.strange++ // it is of no filter, and the server did not count it
		return true, nil
	}
	m.Pending += g.strange
	more, err = g.f(m)
	if err != nil {
		g.refused, g.err = true, err
	}
	g.done = !more || err != nil
	return more, err
}

// batch reads one batch, and asks the leader where a replica has no more.
func (g *gathering) batch(ctx context.Context, n int) error {
	g.strange = 0
	e, err := direct(ctx, g.js, g.stream, getRequest{Seq: g.from, NextFor: g.filter, Batch: n, MaxBytes: readBytes}, n, g.take)
	switch {
	case errors.Is(err, errUnclear): // the leader's answer keeps the two apart
		return g.leader(ctx)
	case err != nil || g.done || e.code == statusEnd && e.pending > 0:
		return err
	}
	return g.leader(ctx)
}

// leader takes the next message from the leader, or learns from it that there is
// none. A stream that goes on growing is read to its end as it was here first.
func (g *gathering) leader(ctx context.Context) error {
	msg, err := DecideNext(ctx, g.js, g.stream, g.filter, g.from)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		g.done = true
		return nil
	}
	if err != nil {
		return err
	}
	if g.upTo == 0 {
		if g.upTo, err = LastSeq(ctx, g.js, g.stream); err != nil {
			return err
		}
	}
	if msg.Sequence > g.upTo {
		g.done = true
		return nil
	}
	msg.Pending = uncounted
	_, err = g.take(msg)
	return err
}
