package request

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/backoff"
)

// askAgain is how often what goes on asks whether it may.
const askAgain = time.Second

// WhileAllowed returns a context that ends, with why as its cause, within a second of when who asks (access.From) loses the right: its
// token was removed, ended or narrowed. may says what the right is. stop must be called.
func WhileAllowed(ctx context.Context, may func(*access.Principal) error) (_ context.Context, stop func()) {
	who := access.From(ctx)
	if who.Now == nil {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		for range backoff.Ticks(ctx, askAgain) {
			now, err := who.Now()
			if err == nil {
				err = may(now)
			}
			if err != nil {
				end(err)
				return
			}
		}
	}()
	return ctx, func() { end(context.Canceled) }
}

// Lost returns why a context of WhileAllowed ended; nil where it did not, or for another reason.
func Lost(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, access.ErrUnauthenticated) || errors.As(cause, new(*access.Denied)) {
		return cause
	}
	return nil
}
