package registry

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

// RecordAt names the record of a topic's front that has a sequence and a time (unix ns) in
// ClickHouse, as a checkpoint does. Its time is when the front stored it, or, where the front has
// another message there or none, when it was made: no message of the front is taken for it then.
func (r *Registry) RecordAt(ctx context.Context, t *schemas.Topic, seq uint64, ts int64) (schemas.Source, error) {
	if seq == 0 {
		return schemas.Source{}, nil
	}
	msg, err := streams.DecideAt(ctx, r.js, t.Front(), seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return schemas.Source{Seq: seq, Stored: ts}, nil
	}
	if err != nil {
		return schemas.Source{}, err
	}
	if changed, ok := changedAt(t, msg); ok && changed == ts {
		ts = msg.Time.UnixNano()
	}
	return schemas.Source{Seq: seq, Stored: ts}, nil
}

// changedAt is the time of a record of the topic.
func changedAt(t *schemas.Topic, msg *streams.Message) (int64, bool) {
	if t.Kind == kinds.Timer {
		r, err := timer.Parse(msg.Subject, msg.Sequence, msg.Header, nil)
		return r.Changed, err == nil && r.Key.Topic == t.Name
	}
	r, err := document.Parse(msg.Subject, msg.Sequence, msg.Header, nil, len(msg.Data))
	return r.Changed, err == nil && r.Topic == t.Name
}
