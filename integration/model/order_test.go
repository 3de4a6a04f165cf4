package model

import (
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// newShard is the id of another shard of a lane. It does not tell the shard's age: an odd factor
// (2^64 over the golden ratio) scatters successive numbers.
func (w *World) newShard(lane int) schemas.Shard {
	w.shardsMade++
	return schemas.Shard(lane)<<56 | (w.shardsMade*0x9E3779B97F4A7C15)>>8
}

// checkOrder checks that a lane filled its shards of a month in the order of registry.Compare, and that a shard that
// precedes another has nothing from after the other's first frame.
func (o *oracle) checkOrder() {
	type span struct {
		registry.Shard
		first, last uint64 // in SHARDS
	}
	filled := map[schemas.Shard]*span{}
	for _, m := range o.w.shards.msgs {
		if m.kind != shardSubject {
			continue
		}
		if s := filled[m.shard]; s != nil {
			s.last = m.seq
		} else {
			filled[m.shard] = &span{o.w.bucket.shard(m.shard).value, m.seq, m.seq}
		}
	}
	var shards []*span
	for _, s := range filled {
		if !o.w.stopped(s.ID.Lane()) {
			shards = append(shards, s)
		}
	}
	slices.SortFunc(shards, func(a, b *span) int { return registry.Compare(a.Shard, b.Shard) })
	for i, a := range shards {
		for j, b := range shards {
			switch {
			case a.ID.Lane() != b.ID.Lane() || i == j:
			case i < j && a.Month == b.Month && a.last > b.first:
				o.w.fail("shard %s (%+v) is ordered before %s (%+v), which was begun before it ended", a.ID, a.Order, b.ID, b.Order)
			case a.Precedes(&b.Shard) && a.last > b.first:
				o.w.fail("shard %s ended at %+v, after shard %s was begun, made at %+v", a.ID, a.Ended, b.ID, b.Order)
			}
		}
	}
}
