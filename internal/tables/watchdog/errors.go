package watchdog

import "errors"

var (
	// ErrVanished: nothing answers on the connection, and over a new one the server
	// reports that it does not run the query.
	ErrVanished = errors.New("ClickHouse vanished from the connection")
	// ErrUnreachable: the request got no answer.
	ErrUnreachable = errors.New("ClickHouse does not answer")
)

// Unanswered is an ErrUnreachable with the transport's reason.
type Unanswered struct{ Reason error }

// Error says why there was no answer.
func (e *Unanswered) Error() string { return ErrUnreachable.Error() + ": " + e.Reason.Error() }

// Unwrap returns ErrUnreachable and the reason.
func (e *Unanswered) Unwrap() []error { return []error{ErrUnreachable, e.Reason} }
