package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// frameCounts is how many frames SHARDS holds of each shard of a topic, by
// subject.
func (v *Verifier) frameCounts(ctx context.Context, topic string) (map[string]uint64, error) {
	subjects, err := streams.Subjects(ctx, v.js, schemas.StreamShards, schemas.ShardsFilter(topic))
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return subjects, nil
}

// cutOff names the positions that are missing between the first frame SHARDS
// holds of a shard and the last. Those before the first were purged, and so were
// those the shard's erasure record knows.
func (v *Verifier) cutOff(ctx context.Context, s *ShardReport, t streams.Tail, h *held) error {
	if len(h.gaps) == 0 {
		return nil
	}
	// The janitor may have purged while the headers were read.
	first, err := streams.FrameFrom(ctx, v.js, t.Ref.Subject(), 1)
	if err != nil {
		return err
	}
	record, err := v.reg.ErasureRecord(ctx, t.Ref)
	if err != nil && !errors.Is(err, registry.ErrUnreadable) { // it may have grown meanwhile
		return err
	}
	for _, g := range h.gaps {
		for _, missing := range record.NotPurged(g) {
			if missing.To >= first.Pos {
				s.problem("positions %d to %d are missing in %s", missing.From, missing.To, schemas.StreamShards)
			}
		}
	}
	return nil
}
