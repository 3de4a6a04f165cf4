package router

import "context"

// turns bounds what a router's lanes do at once: it holds one for each under way.
type turns chan struct{}

// take waits for a turn until ctx ends. Who got one gives it back with done.
func (t turns) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turns) done() { <-t }
