package replay

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// insertEnds are the positions around a gap at which inserts ended, 0 where there is none.
// ClickHouse knows no others: the rows of an insert carry the position of its last frame.
type insertEnds struct {
	below uint64 // the highest below gap.next
	first uint64 // the lowest at or above gap.next
	at    uint64 // the lowest at or above gap.need
	// floor is up to where the registry says that all was stored: an insert ended there,
	// although an erasure may have taken the rows that would show it.
	floor uint64
}

// gap is what SHARDS has nothing of and the replay wants: from next to need.
type gap struct{ next, need uint64 }

// gapBefore is the gap before the first frame that SHARDS has.
func gapBefore(s *shard, after mark, first uint64) gap {
	return gap{max(after.Number+1, s.from), min(first-1, s.to)}
}

// seam is the position up to which ClickHouse must be read for a gap: an insert
// ends there, and where the gap begins another ended, or the replay stopped within
// rows of ClickHouse, which it can find again. Another ended at the floor, too; that
// tells where the gap's first rows begin only when they lie above it.
func (g gap) seam(s *shard, after mark, at insertEnds) (uint64, error) {
	switch {
	case at.at == 0 && at.floor < g.need:
		return 0, fmt.Errorf("%w: %d to %d of %s are neither in %s nor in ClickHouse; run `almanac verify %s`",
			ErrLost, max(g.next, at.below+1), g.need, s.Name(), schemas.StreamShards, s.Topic)
	case at.at == 0:
		return g.need, nil // the rows that carried it are gone on purpose
	case at.at > s.to && after.Number < s.from:
		return 0, refuse(nil, "position %d of %s is no longer in %s, and ClickHouse has it in one insert with others up to %d: end there, or at %d",
			s.to, s.Name(), schemas.StreamShards, at.at, at.below)
	case at.at > s.to:
		return 0, fmt.Errorf("%w: %s: positions %d to %d, of one insert", ErrPurged, s.Name(), g.next, at.at)
	case after.Stored || g.next == 1 || at.below == g.next-1 || at.floor >= g.next-1 && at.floor < at.first:
		return at.at, nil
	case after.Number < s.from:
		return 0, refuse(nil, "position %d of %s is no longer in %s, and ClickHouse has it in one insert with others: begin at %d",
			g.next, s.Name(), schemas.StreamShards, at.below+1)
	}
	return 0, fmt.Errorf("%w: %s: positions %d to %d are of one insert; to have them again, start a new job with --shard %s --from-pos %d",
		ErrPurged, s.Name(), at.below+1, at.at, s.ID, at.below+1)
}

// endsAround asks ClickHouse where inserts ended around a gap.
func (j *Job) endsAround(ctx context.Context, s *shard, g gap) (insertEnds, error) {
	out := insertEnds{floor: s.Floor}
	q := fmt.Sprintf("SELECT maxIf(pos, pos < %d), minIf(pos, pos >= %d), minIf(pos, pos >= %d) FROM %s WHERE month = %d AND shard = %d",
		g.next, g.next, g.need, j.table(), uint32(s.Month), uint64(s.ID))
	if err := j.r.cfg.DB.Conn().QueryRow(ctx, q).Scan(&out.below, &out.first, &out.at); err != nil {
		return out, fmt.Errorf("replay: positions of %s: %w", s.Name(), err)
	}
	return out, nil
}
