package query

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// checkpoints reads how far each lane of a topic is routed, by lane token.
func (r *Reader) checkpoints(ctx context.Context, topic string) (map[string]schemas.Checkpoint, error) {
	out := map[string]schemas.Checkpoint{}
	err := streams.Latest(ctx, r.js, schemas.StreamShards, schemas.RoutedFilter(topic), func(msg *streams.Message) error {
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
// message in SHARDS that is not a frame is not a tail, and a last frame that is
// damaged cannot be one: odd is told, if given. Without odd a damaged one is an
// error, for then the shard would look empty.
func (r *Reader) tails(ctx context.Context, filter string, odd func(error)) ([]tail, error) {
	heads, unread, err := streams.LastHeaders(ctx, r.js, schemas.StreamShards, filter)
	if err != nil {
		return nil, err
	}
	for _, subject := range unread {
		err := fmt.Errorf("%s: its last frame in %s is damaged and cannot be read; run `almanac repair`", subject, schemas.StreamShards)
		if odd == nil {
			return nil, err
		}
		odd(err)
	}
	var out []tail
	for _, msg := range heads {
		t := tail{subject: msg.Subject, seq: msg.Sequence}
		var err error
		if t.topic, t.month, t.shard, err = schemas.ParseShardSubject(msg.Subject); err == nil {
			t.Placed, err = schemas.ParsePlaced(msg.Header)
		}
		if err == nil {
			out = append(out, t)
		} else if odd != nil {
			odd(fmt.Errorf("%s: message %d on %q is no frame: %w", schemas.StreamShards, msg.Sequence, msg.Subject, err))
		}
	}
	return out, nil
}
