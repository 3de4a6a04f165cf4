package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// DeadLetter is what could not be stored, kept whole.
type DeadLetter struct {
	// ID names it: its number in SHARDS and when it was stored, schemas.Source.Name. Seq is
	// the number alone, which is given again where SHARDS loses its end.
	ID    string `json:"id"`
	Seq   uint64 `json:"seq"`
	Topic string `json:"topic"`
	// Reason is a word, Detail the whole error.
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	// Subject is where it was published, and SourceSeq its sequence in EVENTS or a front. Of what is
	// not Almanac's own (schemas.ReasonForeign) the detail says it.
	Subject   string    `json:"subject"`
	SourceSeq uint64    `json:"source_seq"`
	Events    int       `json:"events"`
	Bytes     int       `json:"bytes"` // of the payload
	At        time.Time `json:"at"`
	// Lines of an NDJSON message it is made of; empty for a whole message.
	Lines   string `json:"lines,omitempty"`
	Payload []byte `json:"payload,omitempty"`
}

// letterBytes is about what a dead letter takes beside its payload.
const letterBytes = 1024

// Dead lists up to limit dead letters of a topic, or of all when topic is empty,
// oldest first. Payloads come with them.
func (r *Reader) Dead(ctx context.Context, topic string, limit int) ([]DeadLetter, error) {
	filter := schemas.SubjectsDead
	if topic != "" {
		filter = schemas.DeadSubject(topic)
	}
	var out []DeadLetter
	err := streams.Gather(ctx, r.js, schemas.StreamShards, filter, 1, func() int { return limit - len(out) }, func(msg *streams.Message) (bool, error) {
		if len(out) < limit {
			if err := budget.Of(ctx).Take(letterBytes + int64(len(msg.Data))); err != nil {
				return false, err
			}
			out = append(out, deadLetter(msg))
		}
		return len(out) < limit, nil
	})
	return out, err
}

// EachDead calls f with the dead letters of a topic, or of all when topic is empty, without their payloads, oldest first, until f has
// enough.
func (r *Reader) EachDead(ctx context.Context, topic string, f func(*DeadLetter) (more bool)) error {
	subject := schemas.SubjectsDead
	if topic != "" {
		subject = schemas.DeadSubject(topic)
	}
	some, err := streams.Subjects(ctx, r.js, schemas.StreamShards, subject)
	if err != nil || len(some) == 0 { // one question, where there are none
		return err
	}
	_, err = streams.Headers(ctx, r.js, schemas.StreamShards, subject, 1, func(msg *streams.Message) error {
		d := deadLetter(msg)
		if !f(&d) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errEnough ends a read of dead letters.
var errEnough = errors.New("enough")

// DeadLetter reads one. Without a time its number decides. ErrNoDeadLetter where another
// message has the number since.
func (r *Reader) DeadLetter(ctx context.Context, name schemas.Source) (*DeadLetter, error) {
	msg, err := streams.DecideAt(ctx, r.js, schemas.StreamShards, name.Seq)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("query: dead letter %s: %w", name.Name(), err)
	}
	if err := NotLetter(name, schemas.DeadSubject(""), msg); err != nil {
		return nil, err
	}
	d := deadLetter(msg)
	return &d, nil
}

// NotLetter says why a message, nil for none, is not the dead letter of a name, if so. Its
// subject begins with the given one.
func NotLetter(name schemas.Source, subject string, msg *streams.Message) error {
	switch {
	case msg == nil:
	case name.Stored != 0 && msg.Time.UnixNano() != name.Stored:
		return fmt.Errorf("%w: %w: what had the number %d is gone: %s lost its end and gave the number to another message, %s; `almanac dead ls` lists the letters that are there",
			schemas.ErrRequest, ErrNoDeadLetter, name.Seq, schemas.StreamShards, nameOf(msg))
	case msg.Subject == subject || subject == schemas.DeadSubject("") && strings.HasPrefix(msg.Subject, subject):
		return nil
	}
	return NoDeadLetter(name)
}

// NoDeadLetter is the error of a name that no dead letter has.
func NoDeadLetter(name schemas.Source) error {
	return fmt.Errorf("%w: %w: %s; `almanac dead ls` lists them", schemas.ErrRequest, ErrNoDeadLetter, name.Name())
}

// nameOf names a message of SHARDS to people.
func nameOf(msg *streams.Message) string {
	return schemas.Source{Seq: msg.Sequence, Stored: msg.Time.UnixNano()}.Name()
}

func deadLetter(msg *streams.Message) DeadLetter {
	source, _ := strconv.ParseUint(msg.Header.Get(schemas.HeaderSourceSeq), 10, 64)
	return DeadLetter{
		ID:        nameOf(msg),
		Seq:       msg.Sequence,
		Topic:     strings.TrimPrefix(msg.Subject, schemas.DeadSubject("")),
		Reason:    msg.Header.Get(schemas.HeaderReason),
		Detail:    msg.Header.Get(schemas.HeaderDetail),
		Subject:   msg.Header.Get(schemas.HeaderSourceSubject),
		SourceSeq: source,
		Events:    schemas.EventsOf(msg.Header),
		At:        msg.Time,
		Lines:     msg.Header.Get(schemas.HeaderLine),
		Bytes:     len(msg.Data),
		Payload:   msg.Data,
	}
}
