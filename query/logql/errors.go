package logql

import "errors"

// Kinds of refusals, for errors.Is.
var (
	// ErrSyntax: the text is not LogQL.
	ErrSyntax = errors.New("not LogQL")
	// ErrUnsupported: it is LogQL, and not built here. The message names it.
	ErrUnsupported = errors.New("not built")
	// ErrTooLarge: the query is longer or deeper than a bound.
	ErrTooLarge = errors.New("too large")
	// ErrTooMuch: the answer would need more than one query may read or hold.
	ErrTooMuch = errors.New("more than one query may read")
)

// Error is a refusal of a query, at a place in it.
type Error struct {
	Kind error
	// Line and Column count from 1; 0: it is about no place.
	Line, Column int
	Msg          string
}

func (e *Error) Error() string { return e.Msg }

func (e *Error) Unwrap() error { return e.Kind }
