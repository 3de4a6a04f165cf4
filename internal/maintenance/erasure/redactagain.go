package erasure

import (
	"context"
	"fmt"
	"math"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// RedactAgain redacts an erasure whose names came back with a backup from before it was redacted. What
// the streams have of its time came back too, with events of others. So it purges the erasure's
// events, opens what is left and redacts where none of that is among them. Else it is ErrStillThere,
// and Redact does it later. It is for an Almanac that is not served yet: nothing is sent meanwhile.
func (x *Eraser) RedactAgain(ctx context.Context, topic, id string) error {
	e, err := x.cfg.Registry.Erasure(ctx, topic, id)
	if err != nil || e.Redacted {
		return err
	}
	left, err := x.left(ctx, &e)
	if err == nil && left > 0 {
		if e, err = x.Purge(ctx, topic, id); err == nil {
			left, err = x.left(ctx, &e)
		}
	}
	if err != nil {
		return err
	}
	if left > 0 { // the last message of a shard or lane is state, which Purge leaves
		return fmt.Errorf("%w: %d messages at the ends of shards and lanes have its events; they go once others follow them", ErrStillThere, left)
	}
	_, err = x.redact(ctx, &e)
	return err
}

// left counts the messages of streams that have events of an erasure. It opens each of its time.
func (x *Eraser) left(ctx context.Context, e *ledger.Erasure) (n uint64, err error) {
	if e.State != ledger.Erased {
		return 0, fmt.Errorf("%w: erasure %s is %s; resume it first", ErrRequest, e.ID, e.State)
	}
	t, err := x.cfg.Registry.Topic(ctx, e.Topic)
	if err != nil {
		return 0, err
	}
	count := func(found []hit) error {
		n += uint64(len(found))
		return nil
	}
	shards, err := streams.Subjects(ctx, x.js, schemas.StreamShards, schemas.ShardsFilter(e.Topic))
	if err != nil {
		return 0, err
	}
	for shard := range shards {
		if err := x.hits(ctx, e, &t, schemas.StreamShards, shard, inShard(e, math.MaxUint64), count); err != nil {
			return 0, err
		}
	}
	within := inEventsUpTo(e)
	err = x.hits(ctx, e, &t, schemas.StreamEvents, schemas.TopicFilter(e.Topic), func(msg *streams.Message) (opened, more bool) {
		opened, more = within(msg)
		if opened && !schemas.HasFrameHeaders(msg.Header) && names(e, msg.Data) {
			n++
		}
		return opened, more
	}, count)
	if err != nil {
		return 0, err
	}
	if e.Front != "" {
		front, err := x.frontHolding(ctx, e)
		if err != nil {
			return 0, err
		}
		n += front.Messages
	}
	err = x.deadLetters(ctx, e, &t, func(*streams.Message) error {
		n++
		return nil
	})
	return n, err
}
