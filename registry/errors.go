package registry

import "errors"

var (
	// ErrConflict: somebody else changed the entry first. Read it again.
	ErrConflict = errors.New("registry entry changed meanwhile")
	// ErrNoRegistry: the bucket or a stream does not exist on this server.
	ErrNoRegistry = errors.New("no Almanac on this NATS server")
	// ErrLost: SHARDS holds frames, and the registry does not know their topic: it was
	// lost or emptied. Nothing may be routed until it is rebuilt, or the topic
	// would begin a second life beside its first.
	ErrLost = errors.New("the registry is lost")
	// ErrNotFound: no such entry.
	ErrNotFound = errors.New("no such registry entry")
	// ErrLedgerFull: the ledger takes no more, or none so large.
	ErrLedgerFull = errors.New("the ledger is full")
)
