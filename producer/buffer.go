package producer

import (
	"context"
	"sync"
	"sync/atomic"
)

// buffer bounds what the producer holds, in events and in bytes, over open,
// closed and unanswered frames.
//
// Both counts are in one word, so that a taker sees both or neither: events in
// the upper 24 bits, bytes in the lower 40. Taking is one compare-and-swap and
// never overshoots, so no taker fails because of another that fails too.
type buffer struct {
	used                atomic.Uint64
	maxEvents, maxBytes uint64

	// waiting is the number of callers in wait. While it is not 0, take fails:
	// who waits comes first.
	waiting atomic.Int32
	mu      sync.Mutex
	freed   chan struct{} // closed and renewed when room is given back
}

const (
	byteBits        = 40
	maxBufferEvents = 1<<(64-byteBits) - 1
	maxBufferBytes  = 1<<byteBits - 1
)

func newBuffer(events, bytes int) *buffer {
	return &buffer{maxEvents: uint64(events), maxBytes: uint64(bytes), freed: make(chan struct{})}
}

// take takes room for one event of n bytes, or fails at once.
func (b *buffer) take(n int) bool {
	return b.waiting.Load() == 0 && b.grab(n)
}

func (b *buffer) grab(n int) bool {
	for {
		old := b.used.Load()
		events, bytes := old>>byteBits+1, old&maxBufferBytes+uint64(n)
		if events > b.maxEvents || bytes > b.maxBytes {
			return false
		}
		if b.used.CompareAndSwap(old, events<<byteBits|bytes) {
			return true
		}
	}
}

// wait takes room for one event of n bytes, when there is some. It fails when
// ctx ends or closing is closed.
func (b *buffer) wait(ctx context.Context, closing <-chan struct{}, n int) error {
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	for {
		b.mu.Lock()
		freed := b.freed
		b.mu.Unlock()
		if b.grab(n) { // after freed was read: what is given back now is heard
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-closing:
			return ErrClosed
		}
	}
}

// release gives back room; bytes may be negative, when a frame grew by being
// encoded.
func (b *buffer) release(events, bytes int) {
	b.used.Add(-(uint64(events)<<byteBits + uint64(bytes)))
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	close(b.freed)
	b.freed = make(chan struct{})
	b.mu.Unlock()
}

// above says whether events or bytes are above one nth of their bound.
func (b *buffer) above(n uint64) bool {
	v := b.used.Load()
	return v>>byteBits > b.maxEvents/n || v&maxBufferBytes > b.maxBytes/n
}

func (b *buffer) held() (events, bytes int) {
	v := b.used.Load()
	return int(v >> byteBits), int(v & maxBufferBytes)
}
