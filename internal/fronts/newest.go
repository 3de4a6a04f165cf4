package fronts

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Whatever reaches NATS can publish on a key's subject. What is not a record is passed over: the key is what its newest record
// says, and a write expects the message above. A router keeps it as a dead letter and takes it out.
// One with the header Nats-Rollup took the records below it away: then only ClickHouse can tell what the key was.

// maxBelow bounds the messages below a last one that are read for the newest record: their headers said that they are some.
const maxBelow = 8

// Newest returns a key's newest record as parse reads it, nil without one, and the sequence of the key's last message,
// which a write must expect; 0 without one. parse says schemas.ErrRecord of what is none, also of a message of
// which only the headers were read. ErrReplaced: a message that is none took the place of what was there.
func Newest[R any](ctx context.Context, w *Writer, subject string, parse func(*streams.Message) (*R, error)) (r *R, last uint64, err error) {
	for range newestTries {
		msg, err := w.Last(ctx, subject)
		if errors.Is(err, ErrNotFound) {
			return nil, 0, nil
		}
		if err != nil {
			return nil, 0, err
		}
		r, err := parse(msg)
		if !errors.Is(err, schemas.ErrRecord) {
			return r, msg.Sequence, err
		}
		r, err = below(ctx, w, msg, parse)
		if !errors.Is(err, jetstream.ErrMsgNotFound) { // else the cleaner was there meanwhile
			return r, msg.Sequence, err
		}
	}
	return nil, 0, fmt.Errorf("fronts: %s changed %d times while it was read: %w", subject, newestTries, ErrConflict)
}

// newestTries bounds how often a record is looked for that the cleaner or a write replaced meanwhile.
const newestTries = 16

// below returns the newest record below a key's last message, which is none.
func below[R any](ctx context.Context, w *Writer, last *streams.Message, parse func(*streams.Message) (*R, error)) (*R, error) {
	var seqs []uint64
	replaced := uint64(0)
	_, err := streams.Headers(ctx, w.js, w.stream, last.Subject, 1, func(m *streams.Message) error {
		m.Data = nil // only headers were read
		switch _, err := parse(m); {
		case m.Sequence >= last.Sequence && !schemas.Replaces(m.Header):
		case schemas.Replaces(m.Header) && errors.Is(err, schemas.ErrRecord):
			replaced = m.Sequence
		case err == nil:
			if seqs = append(seqs, m.Sequence); len(seqs) > maxBelow {
				seqs = seqs[1:]
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := len(seqs) - 1; i >= 0; i-- {
		msg, err := streams.DecideAt(ctx, w.js, w.stream, seqs[i])
		if err != nil {
			return nil, err
		}
		r, err := parse(msg)
		if !errors.Is(err, schemas.ErrRecord) {
			return r, err
		}
		if schemas.Replaces(msg.Header) { // the headers alone did not tell
			replaced = max(replaced, msg.Sequence)
		}
	}
	if replaced != 0 {
		return nil, &ReplacedError{Stream: w.stream, Subject: last.Subject, Seq: replaced}
	}
	return nil, nil
}

// ReplacedError is ErrReplaced with the message that did it.
type ReplacedError struct {
	Stream, Subject string
	Seq             uint64
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("message %d of %s, on %s, is not a record and took the place of what was there; `almanac repair` puts back what is stored", e.Seq, e.Stream, e.Subject)
}

// Is makes it an ErrReplaced.
func (e *ReplacedError) Is(target error) bool { return target == ErrReplaced }
