package registry

import "github.com/almanac-events/almanac/schemas"

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
func (s *Shard) LacksEnd(tail uint64, t *Tally) bool {
	return !s.Gone() && s.Until() > tail && !t.Settles(tail, s.Until())
}

// LastLeft is the youngest shard of a lane but one, of those of a month. A stream
// that lost its end lost more of what came later, so this one tells for all before
// it. What retention dropped is settled.
func LastLeft(shards []Shard, lane int, but schemas.Shard) (left Shard, ok bool) {
	for _, s := range shards {
		if s.ID == but || s.Lane != lane || s.Gone() {
			continue
		}
		if !ok || s.CreatedAt.After(left.CreatedAt) {
			left, ok = s, true
		}
	}
	return left, ok
}

// Unsettled are the shards that lack their end and are followed by none of which
// SHARDS has frames; were they, single frames went and not the stream's end, and the
// checkpoint has passed their messages. A router waits for what is unsettled, and
// for nothing else that has to do with ends: were it to go on, it would route frames
// again beside what ClickHouse has of them. What a repair settles is the same.
func Unsettled(shards []Shard, tail func(schemas.Shard) uint64, tally func(schemas.Shard) Tally) map[schemas.Shard]bool {
	type lane struct {
		month schemas.Month
		lane  int
	}
	went := map[lane]Shard{} // the youngest with frames
	for _, s := range shards {
		at := lane{s.Month, s.Lane}
		if w, ok := went[at]; !s.Gone() && tail(s.ID) > 0 && (!ok || s.CreatedAt.After(w.CreatedAt)) {
			went[at] = s
		}
	}
	out := map[schemas.Shard]bool{}
	for _, s := range shards {
		t := tally(s.ID)
		if w, ok := went[lane{s.Month, s.Lane}]; (!ok || !w.CreatedAt.After(s.CreatedAt)) && s.LacksEnd(tail(s.ID), &t) {
			out[s.ID] = true
		}
	}
	return out
}
