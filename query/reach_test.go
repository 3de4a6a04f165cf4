package query

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/query/recent"
)

// shardOf is a shard as its entry has it.
func shardOf(minTs, maxTs int64, rows uint64) (s recent.Shard) {
	s.MinTs, s.MaxTs, s.Rows = minTs, maxTs, rows
	return s
}

// What reach guesses has, by the shards' own numbers, far more events than the page
// takes, lies inside the shards' range, and is not much further than it must be.
func TestReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &plan{from: 1, to: math.MaxInt64, limit: rapid.IntRange(1, MaxLimit).Draw(t, "limit"), asc: rapid.Bool().Draw(t, "asc")}
		if rapid.Bool().Draw(t, "range") {
			p.from = rapid.Int64Range(1, 1e6).Draw(t, "from")
			p.to = p.from + rapid.Int64Range(0, 1e6).Draw(t, "length")
		}
		var parts []recent.Shard
		for range rapid.IntRange(0, MaxPageShards).Draw(t, "shards") {
			lo := rapid.Int64Range(1, 1e6).Draw(t, "min")
			s := shardOf(lo, lo+rapid.Int64Range(0, 1e6).Draw(t, "span"), rapid.Uint64Range(0, 1e6).Draw(t, "rows"))
			if s.Overlaps(p.from, p.to) {
				parts = append(parts, s)
			}
		}
		expected := func(edge int64) (rows float64) {
			for i := range parts {
				lo, hi := max(p.from, edge), p.to
				if p.asc {
					lo, hi = p.from, min(p.to, edge)
				}
				if s := &parts[i]; s.Overlaps(lo, hi) {
					rows += share(s, lo, hi) * float64(s.Rows)
				}
			}
			return rows
		}
		spare := rapid.SampledFrom(spares[:]).Draw(t, "spare")
		edge, ok := p.reach(parts, spare)
		if !ok {
			return
		}
		if edge < p.from || edge > p.to {
			t.Fatalf("%d is outside of %d to %d", edge, p.from, p.to)
		}
		if rows := expected(edge); rows < spare*float64(p.limit+1) {
			t.Fatalf("up to %d there are %.1f events", edge, rows)
		}
	})
}

// Even shards: four times the page, at most eight, and no more than the shards have.
func TestReachOfEvenShards(t *testing.T) {
	t.Parallel()
	parts := []recent.Shard{shardOf(1e6, 2e6-1, 1e6), shardOf(0, 1e6-1, 1e6)}
	p := &plan{from: 1, to: math.MaxInt64, limit: 499}
	edge, ok := p.reach(parts, 4)
	if want := int64(2e6 - 1 - 2048); !ok || edge != want {
		t.Errorf("%d %v, want %d", edge, ok, want)
	}
	if got := p.upTo(parts, edge); len(got) != 1 {
		t.Errorf("%d shards lie within", len(got))
	}
	p.limit = 600_000
	if edge, ok := p.reach(parts, 4); ok {
		t.Errorf("a page of nearly all has a reach of %d", edge)
	}
}
