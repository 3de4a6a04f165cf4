package access

import "errors"

// Errors of this package.
var (
	// ErrUnauthenticated is a secret that is missing where one is asked for, or not a token's. One text for all reasons.
	ErrUnauthenticated = errors.New("no token, or one that is not valid here")
	// ErrToken is a description of a token that is not one.
	ErrToken = errors.New("not a token")
)
