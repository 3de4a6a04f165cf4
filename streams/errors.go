package streams

import (
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrCut: the server's answer ended before it was whole, as it does when a
	// request runs out of time. jetstreamext ends such an answer without an error.
	ErrCut = errors.New("the answer is not whole")
	// ErrNoFrame: the shard has no frame at the sequence or after it.
	ErrNoFrame = errors.New("no such frame")
	// ErrDisconnected: the connection to NATS was lost, and with it the answers
	// under way. Ask again.
	ErrDisconnected = errors.New("the connection to NATS was lost")
	// ErrUnsafe: a stream is configured so that events could be lost.
	ErrUnsafe = errors.New("stream configured unsafely")
)

// LostRace reports whether err is the server's refusal of an expectation.
func LostRace(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence
}

// codeWrongLastSequence is JetStream's "wrong last sequence" (JSStreamWrongLastSequenceErrF).
const codeWrongLastSequence = 10071
