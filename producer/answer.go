package producer

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// outcome is what becomes of a frame.
type outcome uint8

const (
	again  outcome = iota // not stored, or unknown: the same bytes once more
	busy                  // not stored, the stream has too much at once: the same, and less
	stored                // on disk
	tooBig                // refused for good: it would be refused every time
	gone                  // the connection was closed for good
)

// answer is what was heard of one frame.
type answer struct {
	lane    int
	seq     uint64
	outcome outcome
	had     uint64 // stored: the sequence of an earlier message under its id; 0: this one is stored
	err     error  // nil when stored
}

// JetStream error codes that say the frame itself is the trouble. All others
// (stream missing, full, overloaded, sealed, account limits, …) may pass or be
// repaired by an operator, so the frame is kept.
const (
	codeMessageTooLarge jetstream.ErrorCode = 10054
	codeHeadersTooLarge jetstream.ErrorCode = 10097
)

// codeTooManyRequests is JetStream's answer to a message that found the stream's
// ingest queue full.
const codeTooManyRequests jetstream.ErrorCode = 10167

// What an answer without a stream means: on a server alone, and on servers that elect.
var (
	errNoStream = fmt.Errorf("%w: no stream takes %s", ErrNotStored, schemas.SubjectsLanes)
	errNoLeader = fmt.Errorf("%w: %s has no leader now; sending it again", ErrNotStored, schemas.StreamEvents)
)

// answerOf reads a JetStream publish answer. had is the sequence of the message of that id
// that the stream had already, or 0.
func answerOf(m *nats.Msg) (v outcome, had uint64, err error) {
	// An answer without a body and with this status: no stream took the message.
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return again, 0, errNoStream
	}
	var a struct {
		Stream string              `json:"stream"`
		Seq    uint64              `json:"seq"`
		Error  *jetstream.APIError `json:"error"`

		Duplicate bool `json:"duplicate"`
	}
	switch err := json.Unmarshal(m.Data, &a); {
	case err != nil:
		return again, 0, fmt.Errorf("%w: the answer is not JetStream's: %w", ErrNotStored, err)
	case a.Error != nil && (a.Error.ErrorCode == codeMessageTooLarge || a.Error.ErrorCode == codeHeadersTooLarge):
		return tooBig, 0, fmt.Errorf("%w: %w", ErrNotStored, a.Error)
	case a.Error != nil && a.Error.ErrorCode == codeTooManyRequests:
		return busy, 0, fmt.Errorf("%w: %w", ErrNotStored, a.Error)
	case a.Error != nil:
		return again, 0, fmt.Errorf("%w: %w", ErrNotStored, a.Error)
	case a.Stream != schemas.StreamEvents || a.Seq == 0:
		return again, 0, fmt.Errorf("%w: stream %q answered, it must be %q", ErrNotStored, a.Stream, schemas.StreamEvents)
	}
	if a.Duplicate {
		had = a.Seq
	}
	return stored, had, nil
}
