package request

import (
	"context"

	"github.com/almanac-events/almanac/internal/gateway/pool"
)

// holdStep bounds what a request holds before it is counted.
const holdStep = 256 << 10

// Holding counts what a request holds while that grows, in steps: once a step is full it is taken of what all requests may hold (pool.Request.Grow),
// so a request for which there is no room ends before it holds more.
type Holding struct {
	Request *pool.Request
	pending int
}

// Add counts n more bytes.
func (h *Holding) Add(ctx context.Context, n int) error {
	if h.pending += n; h.pending < holdStep {
		return nil
	}
	return h.End(ctx)
}

// End counts what is left of the last step.
func (h *Holding) End(ctx context.Context) error {
	n := h.pending
	h.pending = 0
	return h.Request.Grow(ctx, n)
}
