package audit

import "errors"

var (
	// ErrState: a change is concluded by Committed or RolledBack.
	ErrState = errors.New("bad state of a change")
	// ErrBody: a body cannot be written as JSON. Nothing was stored.
	ErrBody = errors.New("bad body")
	// ErrKind: the producer's topic is not of kind audit, and no trail would show what it stores.
	// Nothing was stored.
	ErrKind = errors.New("not a topic of kind audit")
)
