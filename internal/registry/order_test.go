package registry

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

// Whatever points a lane makes shards at, also where a repair set it back or its stream lost its end: the entries say
// in which order it made them, in every listing, and each keeps the point at which it was made.
func TestOrderIsThatOfTheMaking(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		h := Head{Topic: "app", Month: november}
		var made []Shard
		for range rapid.IntRange(1, 12).Draw(rt, "shards") {
			at := Point{rapid.Uint32Range(0, 2).Draw(rt, "era"), rapid.Uint64Range(0, 5).Draw(rt, "seq")}
			id := schemas.NewShard(rapid.IntRange(0, 1).Draw(rt, "lane"))
			s := h.next(id, at, noon)
			if h = *s.unwritten; rapid.Bool().Draw(rt, "retired") {
				delete(h.Active, id.Lane())
			}
			if s.Order.Point != at {
				rt.Fatalf("made at %+v, the entry says %+v", at, s.Order.Point)
			}
			made = append(made, s)
		}
		listed := slices.Clone(made)
		slices.SortFunc(listed, Compare)
		for lane := range 2 {
			other := func(s Shard) bool { return s.ID.Lane() != lane }
			want, got := slices.DeleteFunc(slices.Clone(made), other), slices.DeleteFunc(slices.Clone(listed), other)
			if !slices.EqualFunc(want, got, func(a, b Shard) bool { return a.ID == b.ID }) {
				rt.Fatalf("lane %d made %v, they are listed as %v", lane, want, got)
			}
		}
	})
}
