package producer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

func TestBufferBounds(t *testing.T) {
	b := newBuffer(3, 100)
	for i, c := range []struct {
		bytes int
		ok    bool
	}{{40, true}, {61, false}, {60, true}, {0, true}, {0, false}} {
		if ok := b.take(c.bytes); ok != c.ok {
			t.Errorf("take %d of %d bytes: %v", i, c.bytes, ok)
		}
	}
	b.release(1, 60)
	b.release(0, -5) // grew by encoding
	if events, bytes := b.held(); events != 2 || bytes != 45 {
		t.Errorf("holds %d events, %d bytes", events, bytes)
	}
	b.release(2, 45)
	if b.used.Load() != 0 {
		t.Errorf("holds %x", b.used.Load())
	}
}

func TestBufferWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBuffer(3, 100)
		b.take(60)
		ctx, cancel := context.WithCancel(t.Context())
		closing := make(chan struct{})
		got := make(chan error, 3)
		go func() { got <- b.wait(ctx, nil, 50) }()
		synctest.Wait()
		if b.take(1) { // it would fit, and the one that waits does not
			t.Error("a new event passed one that waits")
		}
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if !b.take(1) {
			t.Error("one that gave up still keeps others out")
		}
		go func() { got <- b.wait(t.Context(), closing, 50) }()
		synctest.Wait()
		b.release(1, 60)
		if err := <-got; err != nil {
			t.Errorf("room was given back: %v", err)
		}
		go func() { got <- b.wait(t.Context(), closing, 50) }()
		synctest.Wait()
		close(closing)
		if err := <-got; !errors.Is(err, ErrClosed) {
			t.Errorf("closing: %v", err)
		}
	})
}

// No waiter is forgotten, however takers and givers interleave.
func TestBufferForgetsNoWaiter(t *testing.T) {
	b := newBuffer(2, 1000)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 500 {
				if err := b.wait(t.Context(), nil, 10); err != nil {
					t.Error(err)
				}
				b.release(1, 10)
			}
		})
	}
	wg.Wait()
	if b.used.Load() != 0 {
		t.Errorf("holds %x", b.used.Load())
	}
}
