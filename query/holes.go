package query

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

// frameCounts is how many frames SHARDS holds of each shard of a topic, by
// subject.
func (r *Reader) frameCounts(ctx context.Context, topic string) (map[string]uint64, error) {
	info, err := r.shards.Info(ctx, jetstream.WithSubjectFilter(schemas.ShardsFilter(topic)))
	if err != nil {
		return nil, fmt.Errorf("query: %s: %w", schemas.StreamShards, err)
	}
	return info.State.Subjects, nil
}

// holes names the positions that are missing between the first frame SHARDS
// holds of a shard and the last. Those before the first were purged. A whole
// shard costs no request: it has as many frames as its last position says.
func (r *Reader) holes(ctx context.Context, s *ShardReport, t tail, frames uint64, tally registry.Tally) error {
	frames += tally.PurgedPositions()
	if frames >= t.Pos {
		return nil
	}
	first, err := registry.FrameFrom(ctx, r.shards, t.subject, 1)
	if err != nil {
		return err
	}
	if first.Pos+frames > t.Pos {
		return nil
	}
	type hole struct{ from, to uint64 }
	var found []hole
	before := uint64(0)
	err = r.headers(ctx, t.subject, jetstream.DeliverAllPolicy, func(msg jetstream.Msg, seq uint64) error {
		p, err := schemas.ParsePlaced(msg.Headers())
		if err != nil {
			return fmt.Errorf("query: %s message %d: %w", t.subject, seq, err)
		}
		if before > 0 && p.Pos > before+1 {
			found = append(found, hole{before + 1, p.Pos - 1})
		}
		before = p.Pos
		return nil
	})
	if err != nil || len(found) == 0 {
		return err
	}
	// The janitor may have purged while the headers were read.
	if first, err = registry.FrameFrom(ctx, r.shards, t.subject, 1); err != nil {
		return err
	}
	for _, h := range found {
		for h.from <= h.to && tally.IsPurged(h.from) {
			h.from++
		}
		for h.to > h.from && tally.IsPurged(h.to) {
			h.to--
		}
		if h.from <= h.to && h.to >= first.Pos {
			s.problem("positions %d to %d are missing in %s", h.from, h.to, schemas.StreamShards)
		}
	}
	return nil
}
