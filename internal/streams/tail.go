package streams

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Tail is the last frame of a shard, by its headers.
type Tail struct {
	schemas.Placed
	Ref schemas.ShardRef
	// Seq is its sequence in SHARDS. It hides the producer's number of the frame.
	Seq uint64
}

// TailOf reads a shard's last message as its tail.
func TailOf(msg *Message) (t Tail, err error) {
	t.Seq = msg.Sequence
	if t.Ref, err = schemas.ParseShardSubject(msg.Subject); err == nil {
		t.Placed, err = schemas.ParsePlaced(msg.Header)
	}
	return t, err
}

// Tails reads the headers of the last frame of each shard of a topic. A message in
// SHARDS that is not a frame is not a tail, and a last frame that is damaged cannot be
// one: odd is told, if given. Without odd a damaged one is an error, for then the shard
// would look empty.
func Tails(ctx context.Context, js jetstream.JetStream, topic string, odd func(error)) (map[schemas.Shard]Tail, error) {
	heads, unread, err := LastHeaders(ctx, js, schemas.StreamShards, schemas.ShardsFilter(topic))
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
	out := make(map[schemas.Shard]Tail, len(heads))
	for _, msg := range heads {
		t, err := TailOf(msg)
		if err == nil {
			out[t.Ref.ID] = t
		} else if odd != nil {
			odd(fmt.Errorf("%s: message %d on %q is not a frame: %w", schemas.StreamShards, msg.Sequence, msg.Subject, err))
		}
	}
	return out, nil
}
