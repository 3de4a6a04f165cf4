package replay

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/registry/ledger"
)

func TestAbsent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, upTo uint64
		there      []group
		gone       []ledger.Cut
		b          brought
		want       absence
		lost       bool
	}{
		"all there":                   {1, 3, []group{{1, 5}, {2, 5}, {3, 5}}, nil, brought{15, true}, absence{}, false},
		"one erased whole":            {1, 3, []group{{1, 5}, {3, 5}}, []ledger.Cut{{Pos: 2, Rows: 5}}, brought{15, true}, absence{}, false},
		"one lost":                    {1, 3, []group{{1, 5}, {3, 5}}, nil, brought{15, true}, absence{2, 2, 5}, true},
		"one lost, not known how big": {2, 3, []group{{3, 5}}, nil, brought{}, absence{2, 2, 0}, true},
		"one lost, another erased":    {1, 3, []group{{1, 5}}, []ledger.Cut{{Pos: 2, Rows: 5}}, brought{15, true}, absence{3, 3, 5}, true},
		"the first lost":              {4, 6, []group{{6, 5}}, []ledger.Cut{{Pos: 3, Rows: 5}}, brought{}, absence{4, 5, 0}, true},
		"all erased, joined":          {1, 9, nil, []ledger.Cut{{From: 1, Pos: 9, Rows: 45}}, brought{45, true}, absence{}, false},
		"joined beyond both ends":     {3, 5, nil, []ledger.Cut{{From: 1, Pos: 9, Rows: 45}}, brought{15, true}, absence{}, false},
		"erased twice, under way":     {1, 2, []group{{1, 3}}, []ledger.Cut{{Pos: 1, Rows: 2}, {Pos: 2, Rows: 5}, {Pos: 1, Rows: 2}}, brought{10, true}, absence{}, false},
		"a row of a position lost":    {1, 2, []group{{1, 4}, {2, 5}}, nil, brought{10, true}, absence{1, 2, 1}, true},
		"not told how many":           {1, 2, []group{{1, 4}, {2, 5}}, nil, brought{}, absence{}, false},
		"nothing there":               {1, 2, nil, nil, brought{10, true}, absence{1, 2, 10}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, lost := absent(c.from, c.upTo, c.there, c.gone, c.b); got != c.want || lost != c.lost {
				t.Errorf("%+v, %v; want %+v, %v", got, lost, c.want, c.lost)
			}
		})
	}
}

// Whatever erasures took, nothing is lost, unless a position went that none of them took from.
func TestAbsentIsWhatNoErasureTook(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint64Range(1, 12).Draw(rt, "positions")
		var there []group
		var gone []ledger.Cut
		total := uint64(0)
		for pos := uint64(1); pos <= n; pos++ {
			rows := rapid.Uint64Range(1, 4).Draw(rt, "rows")
			total += rows
			took := rapid.Uint64Range(0, rows).Draw(rt, "erased")
			if took > 0 {
				gone = append(gone, ledger.Cut{Pos: pos, Rows: took})
			}
			if took < rows {
				there = append(there, group{pos, rows - took})
			}
		}
		known := rapid.Bool().Draw(rt, "known")
		if len(gone) > 1 && rapid.Bool().Draw(rt, "joined") {
			a, b := gone[0], gone[1]
			gone = append([]ledger.Cut{{From: a.Pos, Pos: b.Pos, Rows: a.Rows + b.Rows}}, gone[2:]...)
		}
		if got, lost := absent(1, n, there, gone, brought{total, known}); lost {
			rt.Fatalf("%+v is lost of %v, %v", got, there, gone)
		}
		if len(there) == 0 {
			return
		}
		i := rapid.IntRange(0, len(there)-1).Draw(rt, "lost")
		pos, taken := there[i].pos, false
		for _, c := range gone {
			taken = taken || c.First() <= pos && pos <= c.Pos
		}
		there = append(there[:i:i], there[i+1:]...)
		if got, lost := absent(1, n, there, gone, brought{total, known}); lost != (known || !taken) || !taken && (got.from > pos || got.to < pos) {
			rt.Fatalf("%+v, %v: position %d was lost of %v, %v", got, lost, pos, there, gone)
		}
	})
}
