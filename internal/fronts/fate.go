package fronts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// fate is what tells one's own record from another's.
type fate struct {
	subject string
	expect  uint64
	nonce   string
	behind  uint64 // how many records of the same batch come before it
	// had is a sequence that the stream had before the write was sent: its own are above it.
	had uint64
}

// outcome is what became of a write whose answer did not come.
type outcome int

const (
	absent  outcome = iota // no message came after the one expected
	mine                   // ours did
	another                // another's did, so ours never can
	blurred                // the cleaner replaced what came, and it cannot be told
)

const (
	// lookPause is how long a read back that failed waits before the next.
	lookPause = 100 * time.Millisecond
	// overlap is how long a server that no longer leads a stream may answer beside the one that
	// does, and a lost race is not believed while no other record is there: twice the time between
	// two messages of the leader, by which it hears of it.
	overlap = 2 * time.Second
	// maxAnswer is the longest wait for an answer: as long as package streams waits for a server that says nothing.
	maxAnswer = 5 * time.Second
)

// lookAll looks at the records of a write until one tells what became of all, and returns
// the sequence of the first record of one's own.
func (w *Writer) lookAll(ctx context.Context, f []fate, wait time.Duration) (outcome, uint64, error) {
	all := absent
	for i := range f {
		one, seq, err := w.look(ctx, &f[i], wait)
		switch {
		case err != nil, one == another:
			return one, 0, err
		case one == mine:
			return mine, seq - f[i].behind, nil
		case one == blurred:
			all = blurred
		}
	}
	return all, 0, nil
}

// look reads the first message of the key after the one that was expected, until it gets
// an answer. Only a write with the same expectation can have stored it. wait is how long
// it waits for the first answer.
func (w *Writer) look(ctx context.Context, f *fate, wait time.Duration) (outcome, uint64, error) {
	for ; ; wait = min(2*wait, maxAnswer) {
		asked, cancel := context.WithTimeout(ctx, wait)
		msg, err := streams.DecideNext(asked, w.js, w.stream, f.subject, f.expect+1)
		cancel()
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return absent, 0, nil
		case err == nil:
			return fateOf(msg, f), msg.Sequence, nil
		}
		if backoff.Sleep(ctx, lookPause) != nil {
			return absent, 0, fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
}

// fateOf tells what became of a write, from the first message that came after the one it
// expected.
func fateOf(msg *streams.Message, f *fate) outcome {
	if msg.Header.Get(schemas.HeaderNonce) == f.nonce {
		return mine
	}
	for _, name := range []string{schemas.HeaderStub, schemas.HeaderRefresh} {
		if _, ok := msg.Header[name]; !ok {
			continue
		}
		if p, err := schemas.ParseFrontPlace(msg.Header.Get(name)); err != nil || p.Seq > max(f.expect, f.had) {
			return blurred // a record that came after the one expected: it may have been ours
		}
	}
	return another
}

// JetStream's codes of a refusal that is not a lost race.
const (
	codeNotStored jetstream.ErrorCode = 10077 // the store's own words, such as maximum bytes exceeded
	// The account, or the server, may not store more.
	codeAccountExceeded jetstream.ErrorCode = 10002
	codeInsufficient    jetstream.ErrorCode = 10023
	codeStorageExceeded jetstream.ErrorCode = 10047

	codeMsgTooLarge jetstream.ErrorCode = 10054 // message size exceeds maximum allowed
)

// refused reports whether JetStream said that it did not store the write.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api)
}

func refusal(subject string, err error) error {
	var api *jetstream.APIError
	switch errors.As(err, &api); {
	case streams.LostRace(err):
		return fmt.Errorf("%w: %s", ErrConflict, subject)
	case api.ErrorCode == codeNotStored && (api.Description == "" || strings.Contains(api.Description, "maximum")):
		return fmt.Errorf("fronts: %s: %w: %w", subject, ErrFull, err)
	case slices.Contains([]jetstream.ErrorCode{codeNotStored, codeAccountExceeded, codeInsufficient, codeStorageExceeded}, api.ErrorCode):
		return fmt.Errorf("fronts: %s: %w: %w", subject, ErrStore, err)
	case api.ErrorCode == codeMsgTooLarge:
		return fmt.Errorf("fronts: %s: %w: at most %d bytes with its headers: %w", subject, ErrTooLarge, schemas.MaxMessageBytes, err)
	}
	return fmt.Errorf("fronts: %s: %w", subject, err)
}
