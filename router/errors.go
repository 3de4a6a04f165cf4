package router

import "errors"

var (
	// ErrLostLane: another router committed on the lane. The lane's run ends and
	// ownership is looked at again.
	ErrLostLane = errors.New("another router works this lane")
	// ErrRolledBack: EVENTS no longer holds what the checkpoint says was routed.
	// The lane stops until somebody looks: going on could skip or repeat events.
	ErrRolledBack = errors.New("EVENTS was rolled back")
	// ErrStaleSeq: a frame's sequence lies further behind its producer's highest
	// than any frame in flight can; whether it was routed cannot be told, so it
	// is kept as a dead letter.
	ErrStaleSeq = errors.New("frame sequence too far behind its producer's")
)
