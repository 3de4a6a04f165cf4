package fronts

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"github.com/almanac-events/almanac/internal/streams"
)

const (
	// MaxBatch bounds the records of an atomic batch: half of what JetStream takes.
	MaxBatch = 500
	// groupWrites and groupBytes bound a group: the stream's ingest queue of 128 MiB
	// takes it many times over.
	groupWrites = MaxBatch
	groupBytes  = 8 << 20
	// singleWrites is how many writes still cost less one by one than an atomic batch,
	// which is 4 syncs and files of its own.
	singleWrites = 16
	// inFlightBytes bounds what waits in a writer and is under way; each write counts
	// writeBytes more than its own.
	inFlightBytes = 64 << 20
	writeBytes    = 8 << 10
	// maxRounds bounds the groups under way. The next begins when the one before it is
	// answered, or slow: one whose answer was lost must not hold up every caller.
	maxRounds = 4
	slow      = 100 * time.Millisecond
)

// errNotSent: the context ended while the write still waited.
var errNotSent = errors.New("nothing was written")

// write is one message that waits for its group.
type write struct {
	msg  *nats.Msg
	size int64
	wait time.Duration // for its answer
	done chan struct{} // closed once the rest is set
	seq  uint64
	err  error
}

func (w *Writer) finish(p *write, seq uint64, err error) {
	p.seq, p.err = seq, err
	close(p.done)
	w.inFlight.Release(p.size)
}

// grouped writes a message with those of other callers, and returns its sequence. After
// an error that is neither errNotSent nor JetStream's it is unknown whether it was stored.
func (w *Writer) grouped(ctx context.Context, msg *nats.Msg, wait time.Duration) (uint64, error) {
	p := &write{msg: msg, size: min(inFlightBytes, int64(len(msg.Data))+writeBytes), wait: wait, done: make(chan struct{})}
	if err := w.inFlight.Acquire(ctx, p.size); err != nil {
		return 0, errors.Join(errNotSent, context.Cause(ctx))
	}
	w.mu.Lock()
	w.waiting = append(w.waiting, p)
	if !w.leading {
		w.leading = true
		go w.lead()
	}
	w.mu.Unlock()
	select {
	case <-p.done:
		return p.seq, p.err
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiting, p); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
		w.inFlight.Release(p.size)
		return 0, errors.Join(errNotSent, context.Cause(ctx))
	}
	return 0, context.Cause(ctx)
}

// lead commits one group after the other until no write waits.
func (w *Writer) lead() {
	for {
		w.rounds <- struct{}{}
		w.mu.Lock()
		var group []*write
		group, w.waiting = next(w.waiting)
		w.leading = len(group) > 0
		w.mu.Unlock()
		if len(group) == 0 {
			<-w.rounds
			return
		}
		answered := make(chan struct{})
		go func() {
			defer func() { <-w.rounds }()
			defer close(answered)
			w.commit(group)
		}()
		timer := time.NewTimer(slow)
		select {
		case <-answered:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// next takes from the writes that wait those that go together: in their order, no key
// twice, within the bounds of a group.
func next(waiting []*write) (group, rest []*write) {
	keys, bytes := make(map[string]bool, min(len(waiting), groupWrites)), 0
	for i, p := range waiting {
		if len(group) == groupWrites || len(group) > 0 && bytes+len(p.msg.Data) > groupBytes {
			return group, append(rest, waiting[i:]...)
		}
		if keys[p.msg.Subject] {
			rest = append(rest, p)
			continue
		}
		keys[p.msg.Subject] = true
		group, bytes = append(group, p), bytes+len(p.msg.Data)
	}
	return group, rest
}

// commit writes a group and answers each of its callers.
func (w *Writer) commit(group []*write) {
	if len(group) <= w.cfg.Single {
		w.singly(group)
		return
	}
	msgs, wait := make([]*nats.Msg, len(group)), time.Duration(0)
	for i, p := range group {
		msgs[i], wait = p.msg, max(wait, p.wait)
	}
	last, err := w.batch(context.Background(), msgs, wait)
	if refused(err) { // it stored nothing
		w.singly(group)
		return
	}
	for i, p := range group {
		w.finish(p, last-uint64(len(group)-1-i), err)
	}
}

// singly sends writes one by one, without waiting for an answer in between, so many at once.
func (w *Writer) singly(group []*write) {
	turns := make(chan struct{}, singleWrites)
	var wg sync.WaitGroup
	for _, p := range group {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			ctx, cancel := context.WithTimeout(context.Background(), p.wait)
			defer cancel()
			ack, err := streams.Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) { return w.js.PublishMsg(ctx, p.msg) })
			if err != nil {
				w.finish(p, 0, err)
				return
			}
			w.finish(p, ack.Sequence, nil)
		})
	}
	wg.Wait()
}

// batch publishes messages, all or none, and returns the sequence of the last.
func (w *Writer) batch(ctx context.Context, msgs []*nats.Msg, wait time.Duration) (last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return streams.Once(ctx, func(ctx context.Context) (uint64, error) { return streams.Commit(ctx, w.js, msgs...) })
}

func newInFlight() *semaphore.Weighted { return semaphore.NewWeighted(inFlightBytes) }
