package registry

import (
	"cmp"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Planned is what retention is to do with a shard, and when at the earliest: an
// active shard's day moves on with its youngest event.
type Planned struct {
	Shard  string    `json:"shard"`
	Step   Step      `json:"step"` // DropIt or AnonymiseIt
	At     time.Time `json:"at"`
	Rows   uint64    `json:"rows"` // an estimate while the shard is not closed
	Bytes  uint64    `json:"bytes"`
	Status Status    `json:"status"`
}

// Plan is what the topic's retention is to do with its shards, earliest first.
func Plan(t *schemas.Topic, shards []Shard) []Planned {
	var out []Planned
	for i := range shards {
		s := &shards[i]
		if s.Gone() {
			continue
		}
		anonymise, drop := s.Due(t)
		if !anonymise.IsZero() && !s.AnonymisedFor(t) {
			out = append(out, Planned{s.Name(), AnonymiseIt, s.reachable(anonymise), s.Rows, s.Bytes, s.Status})
		}
		if !drop.IsZero() {
			out = append(out, Planned{s.Name(), DropIt, s.reachable(drop), s.Rows, s.Bytes, s.Status})
		}
	}
	slices.SortStableFunc(out, func(a, b Planned) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Shard, b.Shard)) })
	return out
}

// Sooner is what comes sooner in a plan than it would have by the one before, or
// would not have come at all.
func Sooner(before, now []Planned) []Planned {
	type what struct {
		shard string
		step  Step
	}
	was := map[what]time.Time{}
	for _, p := range before {
		was[what{p.Shard, p.Step}] = p.At
	}
	return slices.DeleteFunc(slices.Clone(now), func(p Planned) bool {
		at, ok := was[what{p.Shard, p.Step}]
		return ok && !p.At.Before(at)
	})
}
