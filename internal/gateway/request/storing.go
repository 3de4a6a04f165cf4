package request

import (
	"context"
	"errors"

	"github.com/almanac-events/almanac/internal/gateway/pool"
)

// NotStoringError is why nothing can be stored.
type NotStoringError struct{ Reason error }

// Error is the reason.
func (e *NotStoringError) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *NotStoringError) Unwrap() error { return e.Reason }

// WhileStoring returns a context that ends, with a *NotStoringError as its cause, as soon as storing
// says why nothing can be stored. stop must be called; it is nil when nothing can be stored now.
func WhileStoring(ctx context.Context, storing func() error) (_ context.Context, stop func()) {
	ctx, giveUp := context.WithCancelCause(ctx)
	if err := storing(); err != nil {
		giveUp(&NotStoringError{err})
		return ctx, nil
	}
	end := pool.WhileStoring(ctx, func() error {
		if err := storing(); err != nil {
			return &NotStoringError{err}
		}
		return nil
	}, giveUp)
	return ctx, func() {
		end()
		giveUp(errors.New("the request ended"))
	}
}
