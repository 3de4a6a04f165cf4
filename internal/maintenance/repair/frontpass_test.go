package repair

import (
	"fmt"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Records of two months, whose sinks were not equally far: those that have a row, or that SHARDS has, are passed over.
func TestHeldRecords(t *testing.T) {
	t.Parallel()
	const oct, nov = schemas.Month(202610), schemas.Month(202611)
	months := map[uint64]schemas.Month{3: nov, 4: oct, 5: nov, 6: oct, 7: nov}
	for _, c := range []struct {
		name   string
		held   heldRecords
		source uint64
		routed string
	}{
		{"all", heldRecords{rows: []uint64{3, 4, 5, 6, 7}}, 7, "[]"},
		{"the older month's sink was behind", heldRecords{rows: []uint64{3, 5, 7}}, 3, "[4 6]"},
		{"SHARDS has some of it", heldRecords{rows: []uint64{3, 5, 7}, frames: map[schemas.Month]uint64{oct: 4}}, 5, "[6]"},
		{"this month's was", heldRecords{rows: []uint64{3, 4, 6}}, 4, "[5 7]"},
		{"nothing", heldRecords{}, 2, "[3 4 5 6 7]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cp := checkpoint.Checkpoint{Source: 7}
			passing := cp.PassFrom(schemas.Source{Seq: 2})
			for seq := uint64(3); seq <= 7; seq++ {
				passing.Take(schemas.Source{Seq: seq}, c.held.has(months[seq], seq))
			}
			var routed []uint64
			for seq := cp.Source + 1; seq <= 7; seq++ {
				if cp.StoredFrames(schemas.Source{Seq: seq}, 1) == 0 {
					routed = append(routed, seq)
				}
			}
			if got := fmt.Sprint(routed); got != c.routed || cp.Source != c.source || passing.Left() != (got != "[]") {
				t.Errorf("%s: it goes on after %d and routes %s, want %d and %s", c.name, cp.Source, got, c.source, c.routed)
			}
		})
	}
}
