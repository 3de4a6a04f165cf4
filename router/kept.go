package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// A batch ends with the lane's checkpoint. Where SHARDS lost its end inside a batch, the
// dead letters at the batch's beginning may be left without it: their messages come again.
// Frames so left stop the lane (ends.go). A dead letter names the message that it was made
// of, so the lane goes on, and keeps no second one. The checkpoint says which they are: the
// next one lies above them.

// findKept notes the dead letters of the lane that lie above its checkpoint.
func (l *lane) findKept(ctx context.Context) error {
	if l.front != "" {
		return nil
	}
	last, err := streams.DecideLast(ctx, l.js, schemas.StreamShards, l.dead)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && last.Sequence <= l.ckSeq {
		return nil
	}
	if err != nil {
		return fmt.Errorf("router: last dead letter of %s: %w", l.dead, err)
	}
	_, err = streams.Headers(ctx, l.js, schemas.StreamShards, l.dead, l.ckSeq+1, func(msg *streams.Message) error {
		subject, source := msg.Header.Get(schemas.HeaderSourceSubject), schemas.SourceOf(msg.Header)
		if !l.owns(subject) || source.Seq <= l.cp.Source || source.Stored == 0 {
			return nil
		}
		k := checkpoint.Kept{Seq: source.Seq, Stored: source.Stored, Lines: msg.Header.Get(schemas.HeaderLine), Events: schemas.EventsOf(msg.Header)}
		if !l.cp.Keep(k) {
			return fmt.Errorf("%w: %s has more than %d dead letters of messages above its checkpoint; run `almanac repair %s`", ErrRolledBack, l.dead, checkpoint.MaxKept, l.topic)
		}
		return nil
	})
	return err
}

// owns reports whether a message of EVENTS came on one of the lane's subjects.
func (l *lane) owns(subject string) bool {
	if l.only != "" {
		return subject == l.only
	}
	topic, _, token, err := schemas.EventsTokens(subject)
	return err == nil && topic == l.topic && token == l.token
}
