package registry

import (
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

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
	// ErrDisconnected: the connection to NATS was lost, and with it the answers
	// under way. Ask again.
	ErrDisconnected = errors.New("the connection to NATS was lost")
	// ErrUnsafe: a stream is configured so that events could be lost.
	ErrUnsafe = errors.New("stream configured unsafely")
)

// LostRace says whether err is the server's refusal of an expectation.
func LostRace(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence
}

// codeWrongLastSequence is JetStream's "wrong last sequence" (JSStreamWrongLastSequenceErrF).
const codeWrongLastSequence = 10071
