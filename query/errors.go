package query

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

var (
	// ErrCursor: the cursor was not made by this query, or was changed.
	ErrCursor = errors.New("bad cursor")
	// ErrPosition: a tail's position cannot be read, or names a message that is gone.
	ErrPosition = errors.New("bad position")
	// ErrNoEvent: no event has that time and id.
	ErrNoEvent = errors.New("no such event")
	// ErrAccount: ClickHouse does not have the account that a statement was to be asked by, or it has another password.
	ErrAccount = errors.New("no such account of ClickHouse")
	// ErrNoDeadLetter: no dead letter has that number, or another one than was named.
	ErrNoDeadLetter = errors.New("no such dead letter")
)

// joinRequest makes an error the request's fault.
func joinRequest(err error) error { return fmt.Errorf("%w: %w", schemas.ErrRequest, err) }
