package syslog

import (
	"context"
	"sync"

	"github.com/almanac-events/almanac/schemas"
)

// queued is an event that waits for the pool.
type queued struct {
	event schemas.Event
	size  int
}

// eventBytes is what an event takes beside its texts.
const eventBytes = 256

// queue holds events between readers and the pool, within a bound. What take returned
// counts until it is released.
type queue struct {
	maxEvents, maxBytes int

	mu             sync.Mutex
	events         []queued
	count, bytes   int // of events, and of batches that were taken and not released
	closed         bool
	changed, space chan struct{} // closed and renewed: when an event comes to an empty queue or it closes, when a batch is released
}

func newQueue(maxEvents, maxBytes int) *queue {
	return &queue{maxEvents: maxEvents, maxBytes: maxBytes, changed: make(chan struct{}), space: make(chan struct{})}
}

// offer queues an event where there is room.
func (q *queue) offer(ev schemas.Event) bool {
	_, ok := q.try(ev)
	return ok
}

// put queues an event, and waits for room until ctx ends.
func (q *queue) put(ctx context.Context, ev schemas.Event) bool {
	for {
		room, ok := q.try(ev)
		if ok {
			return true
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

func (q *queue) try(ev schemas.Event) (room <-chan struct{}, ok bool) {
	size := ev.Bytes() + eventBytes
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == q.maxEvents || q.bytes+size > q.maxBytes {
		return q.space, false
	}
	q.events = append(q.events, queued{ev, size})
	q.count, q.bytes = q.count+1, q.bytes+size
	if len(q.events) == 1 {
		close(q.changed)
		q.changed = make(chan struct{})
	}
	return nil, true
}

// take waits for events and returns the first ones; none when the queue is closed and
// empty, or ctx ended.
func (q *queue) take(ctx context.Context, maxEvents, maxBytes int) []queued {
	for {
		q.mu.Lock()
		n, bytes := 0, 0
		for n < len(q.events) && n < maxEvents && (n == 0 || bytes+q.events[n].size <= maxBytes) {
			bytes += q.events[n].size
			n++
		}
		batch := q.events[:n:n]
		if q.events = q.events[n:]; len(q.events) == 0 {
			q.events = nil
		}
		closed, changed := q.closed, q.changed
		q.mu.Unlock()
		if n > 0 || closed {
			return batch
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// release makes room of a batch that was taken.
func (q *queue) release(batch []queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count -= len(batch)
	for i := range batch {
		q.bytes -= batch[i].size
	}
	close(q.space)
	q.space = make(chan struct{})
}

// close ends the queue once it is empty. Nothing is put afterwards.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	close(q.changed)
	q.changed = make(chan struct{})
}

// drop forgets what is queued, and returns how many events that were. The input ends with it,
// so count and bytes, by which more is taken, stay as they are.
func (q *queue) drop() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.events)
	q.events = nil
	return n
}
