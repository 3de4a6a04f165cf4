package embedded

import (
	"context"
	"time"
)

// waitTick is how often something that is only just in the way is tried again.
const waitTick = 20 * time.Millisecond

// patiently tries until done says so, ctx ends or patience is over; at least once.
func patiently(ctx context.Context, patience time.Duration, done func() bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
