package loki

import "errors"

var (
	// ErrPush: a body is not a push request.
	ErrPush = errors.New("not a Loki push request")
	// ErrTooLarge: a body is larger than the limit once decompressed.
	ErrTooLarge = errors.New("push request too large")
	// ErrEntry: an entry of a stream cannot become an event.
	ErrEntry = errors.New("bad entry")
)
