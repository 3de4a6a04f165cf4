package alerts

import "errors"

var (
	// ErrRule: a rule cannot be; the text says which, and why. It wraps schemas.ErrRequest.
	ErrRule = errors.New("bad rule")
	// ErrUnknownGroup: there is no group of rules of that name.
	ErrUnknownGroup = errors.New("unknown group of rules")
)
