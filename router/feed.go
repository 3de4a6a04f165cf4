package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// feed reads one lane in order, a bounded distance ahead of the router.
type feed struct {
	iter jetstream.MessagesContext
	ch   chan message
	err  error // set before ch is closed
	// pending is how many messages the server said followed the last that was
	// gathered; asked: it was quiet since, and that was looked at.
	pending uint64
	asked   bool
	// gathered is when the last batch was.
	gathered time.Time
}

// feedAhead and feedPull bound what a lane holds before it is routed, here and in
// the client: 64 frames, 32 MiB of the largest, 7 MiB of usual ones. A bound in bytes
// would make the client allocate a queue for a million messages, 8 MiB a lane, which
// every garbage collection reads (with ten topics a tenth of the CPU of everything but
// ClickHouse); one in
// both would drop messages, because what the server says when a request ends by its
// bytes takes a place in a queue that has none left.
const (
	feedAhead = 32
	feedPull  = 32
)

// idleConsumer is how long the server keeps the ordered consumer of a router
// that died.
const idleConsumer = 30 * time.Second

// startFeed begins at the message with sequence from.
func startFeed(ctx context.Context, events jetstream.Stream, filter string, from uint64) (*feed, error) {
	cons, err := events.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{filter},
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       from,
		InactiveThreshold: idleConsumer,
	})
	if err != nil {
		return nil, fmt.Errorf("router: reading %s: %w", filter, err)
	}
	iter, err := cons.Messages(jetstream.PullMaxMessages(feedPull))
	if err != nil {
		return nil, fmt.Errorf("router: reading %s: %w", filter, err)
	}
	f := &feed{iter: iter, ch: make(chan message, feedAhead)}
	go f.pump(ctx, filter)
	return f, nil
}

func (f *feed) pump(ctx context.Context, filter string) {
	defer close(f.ch)
	for {
		msg, err := f.iter.Next()
		if err != nil {
			f.err = fmt.Errorf("router: reading %s: %w", filter, err)
			return
		}
		meta, err := msg.Metadata()
		if err != nil {
			f.err = fmt.Errorf("router: reading %s: %w", filter, err)
			return
		}
		m := message{subject: msg.Subject(), header: msg.Headers(), data: msg.Data(), seq: meta.Sequence.Stream, stored: meta.Timestamp, pending: meta.NumPending}
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

// gather waits for one message and takes what else is there, and what comes until
// the last batch was a linger ago, within bounds: after a quiet time it goes at
// once, and a busy lane has few batches, for each of which JetStream makes and
// syncs a store of its own. It comes back without any once the lane was quiet for
// a while though messages may be pending.
func (f *feed) gather(ctx context.Context, linger time.Duration, maxMessages, maxBytes int) ([]message, error) {
	var msgs []message
	bytes := 0
	take := func(m message, ok bool) error {
		if !ok {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errors.Join(errFeedEnded, f.err)
		}
		msgs, bytes = append(msgs, m), bytes+len(m.data)
		f.pending, f.asked = m.pending, m.pending == 0
		return nil
	}
	var silence <-chan time.Time
	if !f.asked {
		timer := time.NewTimer(quiet)
		defer timer.Stop()
		silence = timer.C
	}
	select {
	case m, ok := <-f.ch:
		if err := take(m, ok); err != nil {
			return nil, err
		}
	case <-silence:
		f.asked = true
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { f.gathered = time.Now() }()
	var due <-chan time.Time
	for len(msgs) < maxMessages && bytes < maxBytes {
		select {
		case m, ok := <-f.ch:
			if !ok {
				return msgs, nil // routed first; the next gather reports the end
			}
			if err := take(m, ok); err != nil {
				return nil, err
			}
			continue
		default:
		}
		if due == nil {
			timer := time.NewTimer(time.Until(f.gathered.Add(linger)))
			defer timer.Stop()
			due = timer.C
		}
		if bytes >= goodBatchBytes {
			return msgs, nil
		}
		select {
		case m, ok := <-f.ch:
			if !ok {
				return msgs, nil
			}
			if err := take(m, ok); err != nil {
				return nil, err
			}
		case <-due:
			return msgs, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return msgs, nil
}

var errFeedEnded = errors.New("router: the lane's feed ended")

// stop waits for nothing: while the client makes a lost consumer anew, and its
// request has no answer, both Next and Stop take ten seconds. The run's context
// has ended or ends with this; pump holds one message and ends after it.
func (f *feed) stop() {
	go func() {
		f.iter.Stop()
		for range f.ch { // let pump end
		}
	}()
}
