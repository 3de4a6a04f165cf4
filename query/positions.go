package query

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// checkpoints reads how far each lane of a topic is routed, by lane token.
func (r *Reader) checkpoints(ctx context.Context, topic string) (map[string]schemas.Checkpoint, error) {
	out := map[string]schemas.Checkpoint{}
	err := streams.LastMessages(ctx, r.js, schemas.StreamShards, schemas.RoutedFilter(topic), func(msg *jetstream.RawStreamMsg) error {
		cp, err := schemas.ParseCheckpoint(msg.Data)
		if _, lane, ok := schemas.RoutedTokens(msg.Subject); ok && err == nil {
			out[lane] = cp // what is none is the router's to complain of
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("query: checkpoints of %q: %w", topic, err)
	}
	return out, nil
}

// tail is the last frame of a shard, by its headers.
type tail struct {
	schemas.Placed
	subject string
	topic   string
	month   schemas.Month
	shard   schemas.Shard
	seq     uint64
}

// tails reads the headers of the last frame of each shard under a filter. A
// message in SHARDS that is no frame is nobody's tail: noFrame is told, if given.
func (r *Reader) tails(ctx context.Context, filter string, noFrame func(error)) ([]tail, error) {
	var out []tail
	err := r.headers(ctx, filter, jetstream.DeliverLastPerSubjectPolicy, func(msg jetstream.Msg, seq uint64) error {
		t := tail{subject: msg.Subject(), seq: seq}
		var err error
		if t.topic, t.month, t.shard, err = schemas.ParseShardSubject(msg.Subject()); err == nil {
			t.Placed, err = schemas.ParsePlaced(msg.Headers())
		}
		if err == nil {
			out = append(out, t)
		} else if noFrame != nil {
			noFrame(fmt.Errorf("%s: message %d on %s is no frame: %w", schemas.StreamShards, seq, msg.Subject(), err))
		}
		return nil
	})
	return out, err
}

// headers gives f the headers of SHARDS' messages under a filter, to the present
// end.
func (r *Reader) headers(ctx context.Context, filter string, policy jetstream.DeliverPolicy, f func(jetstream.Msg, uint64) error) error {
	return scanHeaders(ctx, r.shards, filter, policy, 0, f)
}

// scanHeaders reads headers through a consumer that ends with the call.
func scanHeaders(ctx context.Context, s jetstream.Stream, filter string, policy jetstream.DeliverPolicy, from uint64, f func(jetstream.Msg, uint64) error) error {
	_, err := streams.Headers(ctx, s, filter, policy, from, f)
	return err
}
