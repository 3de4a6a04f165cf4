package ledger

import (
	"testing"

	"pgregory.net/rapid"
)

// Cuts sum up to the same whatever their order, and a list that was shortened
// never says that more is gone than is.
func TestCuts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) Cut {
			return Cut{Pos: rapid.Uint64Range(1, 9000).Draw(rt, "pos"), Rows: rapid.Uint64Range(1, 9).Draw(rt, "rows"), IDs: rapid.Uint64().Draw(rt, "ids")}
		}), 0, 60)
		a, b := draw.Draw(rt, "a"), draw.Draw(rt, "b")
		if rapid.Bool().Draw(rt, "long") {
			for i := range uint64(3 * MaxCuts) {
				b = append(b, Cut{Pos: i + 1, Rows: i % 3, IDs: i * i})
			}
		}
		sum := AddCuts(a, b)
		if len(sum) > MaxCuts {
			rt.Fatalf("%d cuts", len(sum))
		}
		for i := 1; i < len(sum); i++ {
			if sum[i-1].Pos >= sum[i].Pos {
				rt.Fatalf("cuts %v do not rise", sum)
			}
		}
		pos := rapid.Uint64Range(0, 10000).Draw(rt, "up to")
		exact := SumCuts(a, pos) + SumCuts(b, pos)
		got := SumCuts(sum, pos)
		if got > exact || pos >= 9000 && got != exact {
			rt.Fatalf("%d rows are gone up to %d, the sum says %d", exact, pos, got)
		}
		if Known(sum, pos) && got != exact {
			rt.Fatalf("%d rows are gone up to %d, the sum says %d and that it is known", exact, pos, got)
		}
		if ids, want := SumIDs(sum, pos), SumIDs(a, pos)+SumIDs(b, pos); Known(sum, pos) && ids != want {
			rt.Fatalf("the ids that are gone up to %d sum up to %x, the two lists say %x", pos, ids, want)
		}
	})
}
