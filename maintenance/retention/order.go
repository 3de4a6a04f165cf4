package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// waits reports whether a shard is dropped after others: of a topic with a front the shards of a lane
// go in the order in which they were filled. So what is stored of a key is never without its newest
// version, which alone tells that the key was removed or is retention's. A shard of an earlier month that began
// after this one had ended has nothing older: a writer whose clock stands still would keep all others for good.
func (j *Janitor) waits(ctx context.Context, t *schemas.Topic, e *registry.Shard, all []registry.Shard) (bool, error) {
	for _, o := range before(t, e, all) {
		if o.Month == e.Month {
			return true, nil
		}
		if later, err := j.begunAfter(ctx, o.Ref(), e.Ref()); err != nil || !later {
			return true, err
		}
	}
	return false, nil
}

// before lists the shards of a lane that come before one by their months and ages, and are not dropped.
func before(t *schemas.Topic, e *registry.Shard, all []registry.Shard) []registry.Shard {
	if t.Front() == "" || e.Gone() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(o registry.Shard) bool {
		before := o.Month < e.Month || o.Month == e.Month && o.CreatedAt.Before(e.CreatedAt)
		return !before || o.Lane != e.Lane || o.Gone()
	})
}

// begunAfter reports whether the first frame of a shard came after the last one of another, by their
// sequences in the front. It is false where SHARDS does not have the first frame any more.
func (j *Janitor) begunAfter(ctx context.Context, shard, other schemas.ShardRef) (bool, error) {
	var ends [2]schemas.Placed
	first, err := streams.DecideNext(ctx, j.js, schemas.StreamShards, shard.Subject(), 1)
	if err == nil {
		ends[0], err = schemas.ParsePlaced(first.Header)
	}
	if err == nil {
		var last *streams.Message
		if last, err = streams.DecideLast(ctx, j.js, schemas.StreamShards, other.Subject()); err == nil {
			ends[1], err = schemas.ParsePlaced(last.Header)
		}
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("janitor: which of %s and %s came first: %w", shard, other, err)
	}
	return ends[0].Pos == 1 && ends[0].SourceEra == ends[1].SourceEra && ends[0].SourceFirst > ends[1].SourceSeq, nil
}
