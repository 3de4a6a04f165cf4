package producer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/almanac-events/almanac/schemas"
)

// Publish takes one event and returns when it is stored. Events that are
// published at the same time share a frame: the first of an idle lane goes at
// once, and those that come while it is on its way go together after it.
//
// An error that is not ErrOutcomeUnknown means the event is not stored and will
// not be. When ctx ends before the event was taken, the error wraps ctx's; when
// it ends later, also ErrOutcomeUnknown: the producer goes on sending the event
// until it is stored or Close gives it up. When it also wraps ErrSpooled, the
// event is durable in the spool: this producer, or the next one with its
// directory, goes on. nil always means stored by the server.
func (p *Producer) Publish(ctx context.Context, ev Event) error {
	done := make(chan error, 1)
	var onDisk, left atomic.Bool
	defer left.Store(true)
	w := waiter{stay: true, left: &left, done: func(err error) {
		if err == ErrSpooled { //nolint:errorlint // this very word; one that wraps it is the last
			onDisk.Store(true) // and once more when it is stored
			return
		}
		done <- err
	}}
	if err := p.submit(ctx, &ev, w, true); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	default:
	}
	cause := context.Cause(ctx)
	if onDisk.Load() {
		cause = fmt.Errorf("%w: %w", ErrSpooled, cause)
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, cause)
}

// Submit takes one event, waiting for room in the buffer until ctx ends, and
// returns. done, which may be nil, is called exactly once, from the producer's
// goroutine, with nil when the event is stored or with why it was given up for
// good; under the policy Spool also with ErrSpooled when it is durable on this
// machine's disk and not stored yet, so that nothing is kept in memory for it.
// It must not wait, and must not call Publish, Submit, Flush or Close.
// When Submit returns an error the event was not taken and done is not called.
func (p *Producer) Submit(ctx context.Context, ev Event, done func(error)) error {
	return p.submit(ctx, &ev, waiter{done: done}, false)
}

func (p *Producer) submit(ctx context.Context, ev *Event, w waiter, urgent bool) error {
	a, err := p.admit(ev)
	if err == nil && !p.buffer.take(a.size) {
		err = p.buffer.wait(ctx, p.closing, a.size)
	}
	if err == nil && !p.add(ev, a, w, urgent) {
		err = ErrClosed
	}
	if err != nil {
		p.outer.mu.Lock()
		p.outer.refused++
		p.outer.mu.Unlock()
	}
	return err
}

// try takes an event when there is room now.
func (p *Producer) try(ev *Event, done func(error)) bool {
	a, err := p.admit(ev)
	return err == nil && p.buffer.take(a.size) && p.add(ev, a, waiter{done: done}, false)
}

// barrier waits until a number of frames are settled.
type barrier struct {
	left atomic.Int64 // frames, and one until wait
	done chan struct{}
	over atomic.Bool // the caller no longer waits

	mu   sync.Mutex
	lost int // events given up
	err  error
}

func newBarrier() *barrier {
	b := &barrier{done: make(chan struct{})}
	b.left.Store(1)
	return b
}

// add is the waiter for one more frame, of so many events.
func (b *barrier) add(events int) waiter {
	b.left.Add(1)
	return waiter{stay: true, left: &b.over, done: func(err error) {
		if err == ErrSpooled { //nolint:errorlint // this very word; one that wraps it is the last
			return // and once more when it is stored
		}
		if err != nil {
			b.mu.Lock()
			b.lost += events
			b.err = err
			b.mu.Unlock()
		}
		b.resolve()
	}}
}

func (b *barrier) resolve() {
	if b.left.Add(-1) == 0 {
		close(b.done)
	}
}

func (b *barrier) wait(ctx context.Context) error {
	defer b.over.Store(true)
	b.resolve()
	select {
	case <-b.done:
	case <-ctx.Done():
		return fmt.Errorf("producer: not yet flushed: %w", context.Cause(ctx))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return fmt.Errorf("producer: %d events were given up: %w", b.lost, b.err)
	}
	return nil
}

// Event and its parts, so that logging needs one import.
type (
	// Event is one thing that happened.
	Event = schemas.Event
	// Attr is one named value of an event.
	Attr = schemas.Attr
	// ID is an event's identity, a UUIDv7.
	ID = schemas.ID
)
