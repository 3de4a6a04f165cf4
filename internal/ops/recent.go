package ops

import (
	"context"
	"time"
)

// recentFor is how long an answer about the servers is given again: all may ask, and each question costs the servers something.
const recentFor = 250 * time.Millisecond

// askWait bounds the question to the servers: probes have little patience, and are to hear the reason.
const askWait = 2 * time.Second

// shared gives many who ask at once, or soon after, one answer. Who goes away meanwhile spoils no other's.
func shared(ask func(context.Context) []Reason) func(context.Context) []Reason {
	var (
		turn    = make(chan struct{}, 1) // has room for the one who asks
		at      time.Time
		reasons []Reason
	)
	return func(ctx context.Context) []Reason {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return []Reason{Because(Away, "those who asked before still wait for the answer of the servers")}
		}
		defer func() { <-turn }()
		if !at.IsZero() && time.Since(at) < recentFor {
			return reasons
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWait)
		defer cancel()
		reasons = ask(ctx)
		at = time.Now()
		return reasons
	}
}
