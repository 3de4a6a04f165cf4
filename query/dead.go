package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// DeadLetter is what could not be stored, kept whole.
type DeadLetter struct {
	// Seq is its number in SHARDS.
	Seq   uint64 `json:"seq"`
	Topic string `json:"topic"`
	// Reason is a word, Detail the whole error.
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	// Subject and SourceSeq are where it was published in EVENTS.
	Subject   string    `json:"subject"`
	SourceSeq uint64    `json:"source_seq"`
	Events    int       `json:"events"`
	At        time.Time `json:"at"`
	// Lines of an NDJSON message it is made of; empty for a whole message.
	Lines   string `json:"lines,omitempty"`
	Payload []byte `json:"payload,omitempty"`
}

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
			out = append(out, deadLetter(msg))
		}
		return len(out) < limit, nil
	})
	return out, err
}

// DeadLetter reads one.
func (r *Reader) DeadLetter(ctx context.Context, seq uint64) (*DeadLetter, error) {
	msg, err := streams.DecideAt(ctx, r.js, schemas.StreamShards, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && !strings.HasPrefix(msg.Subject, schemas.DeadSubject("")) {
		return nil, fmt.Errorf("%w: %w: %d; `almanac dead ls` lists them", schemas.ErrRequest, ErrNoDeadLetter, seq)
	}
	if err != nil {
		return nil, fmt.Errorf("query: dead letter %d: %w", seq, err)
	}
	d := deadLetter(msg)
	return &d, nil
}

func deadLetter(msg *streams.Message) DeadLetter {
	source, _ := strconv.ParseUint(msg.Header.Get(schemas.HeaderSourceSeq), 10, 64)
	return DeadLetter{
		Seq:       msg.Sequence,
		Topic:     strings.TrimPrefix(msg.Subject, schemas.DeadSubject("")),
		Reason:    msg.Header.Get(schemas.HeaderReason),
		Detail:    msg.Header.Get(schemas.HeaderDetail),
		Subject:   msg.Header.Get(schemas.HeaderSourceSubject),
		SourceSeq: source,
		Events:    schemas.EventsOf(msg.Header),
		At:        msg.Time,
		Lines:     msg.Header.Get(schemas.HeaderLine),
		Payload:   msg.Data,
	}
}
