package router

import (
	"fmt"
	"testing"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// A lane of a front has records of two months. Those whose rows are there, or which are in a shard that did not fork,
// are not routed again, and all others are.
func TestBehindForks(t *testing.T) {
	t.Parallel()
	const nov, dec = schemas.Month(202611), schemas.Month(202612)
	fork := func(m schemas.Month, stored uint64) registry.Shard {
		return registry.Shard{Month: m, Fork: &registry.Fork{Stored: schemas.Source{Seq: stored}}}
	}
	// Records 1 to 4 and 6 are of November, 5 and 7 to 10 of December.
	months := map[uint64]schemas.Month{}
	for seq := uint64(1); seq <= 10; seq++ {
		if months[seq] = nov; seq == 5 || seq >= 7 {
			months[seq] = dec
		}
	}
	for _, c := range []struct {
		name     string
		was      uint64
		isStored []checkpoint.StoredRun
		forked   []registry.Shard
		routed   string // again, or at last
	}{
		{"one month, on", 2, nil, []registry.Shard{fork(nov, 4)}, "[5 6 7 8 9 10]"},
		{"one month, back", 10, nil, []registry.Shard{fork(dec, 8)}, "[9 10]"},
		{"the older one, back", 10, nil, []registry.Shard{fork(nov, 3)}, "[4 6]"},
		{"the older one, on", 3, nil, []registry.Shard{fork(nov, 6)}, "[5 7 8 9 10]"},
		{"both, on", 4, nil, []registry.Shard{fork(nov, 6), fork(dec, 8)}, "[9 10]"},
		{"both, one back", 6, nil, []registry.Shard{fork(nov, 3), fork(dec, 8)}, "[4 6 9 10]"},
		{"two of a month", 10, nil, []registry.Shard{fork(dec, 5), fork(dec, 8)}, "[9 10]"},
		{"again, before they were sealed", 3, []checkpoint.StoredRun{{From: 5, To: 5}, {From: 7, To: 10}}, []registry.Shard{fork(nov, 3)}, "[4 6]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := checkpoint.Checkpoint{Source: c.was, StoredRun: c.isStored}
			h := heldBy(next, c.forked)
			low, _ := h.bounds()
			passing := next.PassFrom(low)
			for seq := low.Seq + 1; seq <= 10; seq++ {
				if s := (schemas.Source{Seq: seq}); !passing.Take(s, h.has(months[seq], s)) {
					t.Fatalf("%s: too many runs", c.name)
				}
			}
			var routed []uint64
			for seq := next.Source + 1; seq <= 10; seq++ {
				if next.StoredFrames(schemas.Source{Seq: seq}, 1) == 0 {
					routed = append(routed, seq)
				}
			}
			if got := fmt.Sprint(routed); got != c.routed {
				t.Errorf("%s: routed are %s, want %s (%+v)", c.name, got, c.routed, next)
			}
		})
	}
}
