package ops

import (
	"context"
	"time"
)

// recentFor is how long an answer about the servers is given again: all may ask, and each question costs the servers something.
const recentFor = 250 * time.Millisecond

// shared gives many who ask at once, or soon after, one answer. Who goes away meanwhile spoils no other's.
func shared(ask func(context.Context) []string) func(context.Context) []string {
	var (
		turn    = make(chan struct{}, 1) // has room for the one who asks
		at      time.Time
		reasons []string
	)
	return func(ctx context.Context) []string {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return []string{"those who asked before still wait for an answer"}
		}
		defer func() { <-turn }()
		if !at.IsZero() && time.Since(at) < recentFor {
			return reasons
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Wait)
		defer cancel()
		reasons = ask(ctx)
		at = time.Now()
		return reasons
	}
}
