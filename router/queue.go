package router

import "context"

// queue bounds what a router's lanes do at once: it holds one for each under way.
type queue chan struct{}

// take waits for a turn until ctx ends. Who got one gives it back with done.
func (t queue) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t queue) done() { <-t }
