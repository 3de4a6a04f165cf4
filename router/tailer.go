package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
)

// tailer reads one lane in order, a bounded distance ahead of the router.
type tailer struct {
	end context.CancelFunc
	ch  chan message
	err error // set before ch is closed
	// pending is how many messages the server said followed the last that was
	// gathered; asked: it was quiet since, and that was looked at.
	pending uint64
	asked   bool
	// gathered is when the last batch was.
	gathered time.Time
}

// readAhead bounds what a lane holds before it is routed, here and again in the
// client: 64 frames, 32 MiB of the largest, 7 MiB of usual ones.
const readAhead = 32

// recordsAhead is readAhead of a front, whose messages are some hundred bytes, and 64 MiB
// of the largest.
const recordsAhead = 256

// startTailer begins at the message of a stream with sequence from, and holds at most so
// many ahead.
func startTailer(ctx context.Context, js jetstream.JetStream, stream, filter string, from uint64, ahead int) (*tailer, error) {
	following, err := streams.Follow(ctx, js, stream, streams.Range{Filter: filter, From: from}, ahead)
	if err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &tailer{end: cancel, ch: make(chan message, ahead)}
	go f.pump(ctx, following)
	return f, nil
}

func (f *tailer) pump(ctx context.Context, following *streams.Follower) {
	defer close(f.ch)
	defer following.Stop()
	for {
		msg, err := following.Next(ctx)
		if err != nil {
			f.err = fmt.Errorf("router: %w", err)
			return
		}
		m := message{subject: msg.Subject, header: msg.Header, data: msg.Data, seq: msg.Sequence, stored: msg.Time, pending: msg.Pending}
		select {
		case f.ch <- m:
		case <-ctx.Done():
			f.err = ctx.Err()
			return
		}
	}
}

// goodBatchBytes is when a batch is worth its price, which the linger is for:
// what staging it costs the stream is a tenth of storing its frames then.
const goodBatchBytes = 2 << 20

// gather waits for one message and takes what else is there, and what comes until dueAt,
// within bounds. The lane's next beat is dueAt (pace.go): it has passed after a quiet time,
// so a batch goes at once then, and a busy lane has few batches. gather comes back without
// any once the lane was quiet for a while though messages may be pending (unread.go).
//
// It notes in the feed what came with the last message (took), and when it was done.
func (f *tailer) gather(ctx context.Context, dueAt time.Time, maxMessages, maxBytes int) ([]message, error) {
	first, err := f.first(ctx)
	if first == nil || err != nil {
		return nil, err
	}
	msgs, bytes := []message{*first}, len(first.data)
	defer func() { f.gathered = time.Now() }()
	due := time.NewTimer(time.Until(dueAt))
	defer due.Stop()
	for len(msgs) < maxMessages && bytes < maxBytes {
		var m message
		ok, waits := false, false
		select {
		case m, ok = <-f.ch:
		default:
			waits = true
		}
		if waits {
			if bytes >= goodBatchBytes {
				return msgs, nil
			}
			select {
			case m, ok = <-f.ch:
			case <-due.C:
				return msgs, nil
			case <-ctx.Done():
				return nil, ctx.Err() // none is routed: the next run reads them again
			}
		}
		if !ok {
			return msgs, nil // routed first; the next gather reports the end
		}
		f.took(&m)
		msgs, bytes = append(msgs, m), bytes+len(m.data)
	}
	return msgs, nil
}

// first waits for a message. It is nil when none came for quiet, unless that was looked at
// before.
func (f *tailer) first(ctx context.Context) (*message, error) {
	var silence <-chan time.Time
	if !f.asked {
		timer := time.NewTimer(quiet)
		defer timer.Stop()
		silence = timer.C
	}
	select {
	case m, ok := <-f.ch:
		switch {
		case ok:
			f.took(&m)
			return &m, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		return nil, errors.Join(errTailerEnded, f.err)
	case <-silence:
		f.asked = true
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// took notes what the server said with a message.
func (f *tailer) took(m *message) { f.pending, f.asked = m.pending, m.pending == 0 }

var errTailerEnded = errors.New("router: the lane's feed ended")

// stop ends the pump, which waits for nothing but its context.
func (f *tailer) stop() { f.end() }
