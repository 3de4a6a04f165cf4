package streams

import (
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrCut: the server's answer did not come, or not whole. Nothing may be made of
	// what came of it; ask again.
	ErrCut = errors.New("NATS did not answer completely")
	// ErrGivenAgain: the stream lost its end, and stores other messages under the sequences
	// that it had given. Find out where to go on.
	ErrGivenAgain = errors.New("the stream lost its end")
	// ErrNoFrame: the shard has no frame at the sequence or after it.
	ErrNoFrame = errors.New("no such frame")
	// ErrDisconnected: the connection to NATS was lost, and with it the answers
	// under way. Ask again.
	ErrDisconnected = errors.New("the connection to NATS was lost")
	// ErrStoreTooSmall: the server may not store as much as the stream's bound.
	ErrStoreTooSmall = errors.New("the store of this NATS server is too small")
	// ErrDenied: the user of the connection may not do that.
	ErrDenied = errors.New("NATS does not let this user do that")
	// ErrNoRights: the server does not say what the user of a connection may do.
	ErrNoRights = errors.New("this NATS server does not say what its users may do")
	// ErrCopying: a backup copies the streams, so nothing was taken out of them. Ask again when it has ended.
	ErrCopying = errors.New("a backup is copying the streams, and nothing is taken out of them meanwhile: try again when it has ended")
	// ErrPurged: while the streams were copied messages were taken out that could not wait, since one was nearly full say, or may have been.
	ErrPurged = errors.New("streams were purged while they were copied")
	// ErrUnsafe: a stream is configured so that events could be lost.
	ErrUnsafe = errors.New("stream configured unsafely")
)

// LostRace reports whether err is the server's refusal of an expectation: another
// process wrote first. Read again.
func LostRace(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// codeStreamFull is JetStream's "maximum bytes exceeded".
const codeStreamFull = 10077

// Full reports whether err is the refusal of a stream that holds as much as it may.
func Full(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeStreamFull
}
