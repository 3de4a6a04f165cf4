package request_test

import (
	"context"
	"errors"
	"testing"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// What a request holds is counted while it grows: where other requests hold all there is, it ends after a step.
func TestHolding(t *testing.T) {
	t.Parallel()
	const all, step = 1 << 20, 256 << 10
	e := pooltest.Start(t, func(c *pool.Config) { c.InFlight = all })
	other := e.Pool.Begin(pool.InputRemoteWrite)
	if err := other.Grow(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	req := e.Pool.Begin(pool.InputRemoteWrite)
	defer req.End()
	gone, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing waits for room
	h := request.Holding{Request: req}
	for n := range step/1024 - 1 {
		if err := h.Add(gone, 1024); err != nil {
			t.Fatalf("after %d bytes: %v", n*1024, err)
		}
	}
	if err := h.Add(gone, 1024); !errors.Is(err, context.Canceled) {
		t.Errorf("a step is full, and there is no room: %v", err)
	}
	other.End()
	free := e.Pool.Begin(pool.InputRemoteWrite)
	h = request.Holding{Request: free}
	for range 3 {
		if err := h.Add(t.Context(), all/2-1); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.Pool.Begin(pool.InputRemoteWrite).Grow(gone, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("what was held is not counted: %v", err)
	}
	free.End()
}
