package registry

import (
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// Until is up to where a shard that was left has frames: where it was sealed, or,
// until it is, where the rotation saw it end. 0: it goes on, or retention left it.
func (s *Shard) Until() uint64 {
	if s.Status == Active {
		return s.LeftAt
	}
	return s.SealedAt
}

// LacksEnd says that SHARDS, in which the shard ends at position tail, lost its end
// since it was left, and that it is not yet known what became of the frames.
func (s *Shard) LacksEnd(tail uint64, t *ledger.ErasureRecord) bool {
	return !s.Gone() && s.Until() > tail && !t.Stored(tail, s.Until())
}

// LastLeft returns the youngest of a lane's shards in a month, the shard but left out. A
// stream that lost its end lost the youngest frames first, so what this shard still has
// tells for all older ones. Shards that retention dropped do not count.
func LastLeft(shards []Shard, lane int, but schemas.Shard) (left Shard, ok bool) {
	for _, s := range shards {
		if s.ID == but || s.ID.Lane() != lane || s.Gone() {
			continue
		}
		if !ok || Compare(s, left) > 0 {
			left, ok = s, true
		}
	}
	return left, ok
}

// Unsettled returns the shards that lack their end, unless SHARDS has frames of a younger
// shard of the lane: then single frames are missing and not the stream's end, and the
// checkpoint is above their messages. A router waits for unsettled shards. If it went on it
// would route frames again that ClickHouse has already. A repair settles the same shards.
func Unsettled(shards []Shard, tail func(schemas.Shard) uint64, record func(schemas.Shard) ledger.ErasureRecord) map[schemas.Shard]bool {
	type lane struct {
		month schemas.Month
		lane  int
	}
	went := map[lane]Shard{} // the youngest with frames
	for _, s := range shards {
		at := lane{s.Month, s.ID.Lane()}
		if w, ok := went[at]; !s.Gone() && tail(s.ID) > 0 && (!ok || Compare(s, w) > 0) {
			went[at] = s
		}
	}
	out := map[schemas.Shard]bool{}
	for _, s := range shards {
		t := record(s.ID)
		if w, ok := went[lane{s.Month, s.ID.Lane()}]; (!ok || Compare(w, s) <= 0) && s.LacksEnd(tail(s.ID), &t) {
			out[s.ID] = true
		}
	}
	return out
}
