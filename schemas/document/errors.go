package document

import "errors"

var (
	// ErrID: the id is not one that the topic takes.
	ErrID = errors.New("bad document id")
	// ErrPath: the path is not one.
	ErrPath = errors.New("bad path")
	// ErrBody: the body is not a JSON object, or is too large.
	ErrBody = errors.New("bad document")
	// ErrLock: a lock cannot be had for such a time, or under such a name.
	ErrLock = errors.New("bad lock")
)
