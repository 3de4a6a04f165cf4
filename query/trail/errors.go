package trail

import "errors"

var (
	// ErrIncomplete: more accepted events wait to be stored than one read takes.
	ErrIncomplete = errors.New("the trail cannot be read whole now")
	// ErrCursor: a cursor is not one of this request.
	ErrCursor = errors.New("bad cursor")
)
