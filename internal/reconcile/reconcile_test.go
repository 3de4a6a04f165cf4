package reconcile

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
)

// tens are frames at some positions, each of 10 rows whose ids sum up to 100.
func tens(positions ...uint64) (out []Frame) {
	for _, p := range positions {
		out = append(out, Frame{Pos: p, Rows: 10, ShardRows: 10 * p, ShardIDs: 100 * p})
	}
	return out
}

// there is rows of which no two share an id.
func there(pos, rows, ids uint64) tables.Group {
	return tables.Group{Pos: pos, Rows: rows, Distinct: rows, IDs: ids}
}

func TestDiffering(t *testing.T) {
	t.Parallel()
	ten := func(pos uint64) tables.Group { return there(pos, 10, 100) }
	for name, c := range map[string]struct {
		frames []Frame
		rows   []tables.Group
		gone   []ledger.Cut
		want   []Stretch
	}{
		"whole":              {tens(1, 2, 3), []tables.Group{ten(1), ten(2), ten(3)}, nil, nil},
		"nothing":            {tens(1, 2, 3), nil, nil, nil},
		"not all stored yet": {tens(1, 2, 3), []tables.Group{ten(1)}, nil, nil},
		"a row missing": {tens(1, 2, 3), []tables.Group{ten(1), there(2, 9, 91), ten(3)}, nil,
			[]Stretch{{Lo: 1, Hi: 2, Want: 10, Have: 9, Distinct: 9, WantIDs: 100, HaveIDs: 91, Summed: true}}},
		"positions missing": {tens(1, 2, 3, 4), []tables.Group{ten(1), ten(4)}, nil,
			[]Stretch{{Lo: 1, Hi: 3, Want: 20, WantIDs: 200, Summed: true}}},
		"doubled": {tens(1, 2), []tables.Group{ten(1), {Pos: 2, Rows: 20, Distinct: 10, IDs: 200}}, nil,
			[]Stretch{{Lo: 1, Hi: 2, Want: 10, Have: 20, Distinct: 10, WantIDs: 100, HaveIDs: 200, Summed: true}}},
		"one for another": {tens(1, 2), []tables.Group{ten(1), there(2, 10, 99)}, nil,
			[]Stretch{{Lo: 1, Hi: 2, Want: 10, Have: 10, Distinct: 10, WantIDs: 100, HaveIDs: 99, Summed: true}}},
		"a row at another frame's position": {tens(1, 2), []tables.Group{there(1, 9, 90), there(2, 11, 110)}, nil,
			[]Stretch{{Lo: 0, Hi: 1, Want: 10, Have: 9, Distinct: 9, WantIDs: 100, HaveIDs: 90, Summed: true}, {Lo: 1, Hi: 2, Want: 10, Have: 11, Distinct: 11, WantIDs: 100, HaveIDs: 110, Summed: true}}},
		"a client's ids twice":            {tens(1), []tables.Group{{Pos: 1, Rows: 10, Distinct: 9, IDs: 100}}, nil, nil},
		"purged, all there":               {tens(5, 6), []tables.Group{ten(1), ten(2), ten(3), ten(4), ten(5), ten(6)}, nil, nil},
		"purged, missing":                 {tens(5, 6), []tables.Group{ten(1), there(2, 5, 1), ten(4), ten(5), ten(6)}, nil, []Stretch{{Lo: 0, Hi: 4, Want: 40, Have: 25, Distinct: 25, HaveIDs: 201}}},
		"purged, one twice":               {tens(3), []tables.Group{ten(1), {Pos: 2, Rows: 10, Distinct: 9}, ten(3)}, nil, []Stretch{{Lo: 0, Hi: 2, Want: 20, Have: 20, Distinct: 19, HaveIDs: 100}}},
		"erased":                          {tens(1, 2), []tables.Group{there(1, 7, 60), ten(2)}, []ledger.Cut{{Pos: 1, Rows: 3, IDs: 40}}, nil},
		"erased whole":                    {tens(1, 2, 3), []tables.Group{ten(1), ten(3)}, []ledger.Cut{{Pos: 2, Rows: 10, IDs: 100}}, nil},
		"another than erased":             {tens(1), []tables.Group{there(1, 7, 61)}, []ledger.Cut{{Pos: 1, Rows: 3, IDs: 40}}, []Stretch{{Hi: 1, Want: 7, Have: 7, Distinct: 7, WantIDs: 60, HaveIDs: 61, Summed: true}}},
		"erased, joined":                  {tens(1, 2, 3), []tables.Group{there(1, 7, 60), there(2, 8, 80), ten(3)}, []ledger.Cut{{From: 1, Pos: 2, Rows: 5, IDs: 60}}, nil},
		"erased, the last of them joined": {tens(3), []tables.Group{there(1, 9, 90), there(4, 10, 100)}, []ledger.Cut{{Pos: 1, Rows: 1, IDs: 10}, {From: 2, Pos: 3, Rows: 20, IDs: 200}}, nil},
		"erased, under way":               {tens(1), []tables.Group{there(1, 4, 30)}, []ledger.Cut{{Pos: 1, Rows: 3, IDs: 40}, {Pos: 1, Rows: 3, IDs: 30}}, nil},
		"beyond the frames":               {tens(1), []tables.Group{ten(1), ten(2)}, nil, nil},
		"a position that comes twice":     {append(tens(1, 2), tens(2, 3)...), []tables.Group{ten(1), ten(2), ten(3)}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, _ := Compare(c.frames, c.rows, c.gone)
			if got := Differing(all); !slices.Equal(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// What lies above the frames is the rest.
func TestRest(t *testing.T) {
	t.Parallel()
	_, rest := Compare(tens(1, 2), []tables.Group{there(1, 10, 100), there(3, 5, 1), {Pos: 9, Rows: 4, Distinct: 3}}, nil)
	if want := (Rest{Lo: 2, Hi: 9, Brought: 20, Have: 9, Distinct: 8}); rest != want {
		t.Errorf("%+v, want %+v", rest, want)
	}
}

// Two copies of a shard agree up to the last position before rows that are not the frame's.
func TestAgree(t *testing.T) {
	t.Parallel()
	ten := func(pos uint64) tables.Group { return there(pos, 10, 100) }
	for name, c := range map[string]struct {
		frames []Frame
		rows   []tables.Group
		gone   []ledger.Cut
		want   uint64
	}{
		"nothing stored":             {tens(1, 2), nil, nil, 0},
		"all stored":                 {tens(1, 2), []tables.Group{ten(1), ten(2)}, nil, 2},
		"ClickHouse has more":        {tens(1, 2), []tables.Group{ten(1), ten(2), there(9, 50, 1)}, nil, 2},
		"other events of that count": {tens(1, 2, 3), []tables.Group{ten(1), there(2, 10, 101), ten(3)}, nil, 1},
		"another count":              {tens(1, 2, 3), []tables.Group{ten(1), there(2, 11, 100), ten(3)}, nil, 1},
		"some were erased":           {tens(1, 2), []tables.Group{there(1, 9, 93), ten(2)}, []ledger.Cut{{Pos: 1, Rows: 1, IDs: 7}}, 2},
		"purged below":               {tens(3, 4), []tables.Group{ten(1), ten(2), ten(3), ten(4)}, nil, 4},
		"purged below, and another":  {tens(3, 4), []tables.Group{ten(1), there(2, 9, 100), ten(3), ten(4)}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, _ := Compare(c.frames, c.rows, c.gone)
			if got := Agree(all); got != c.want {
				t.Errorf("they agree up to %d, want %d", got, c.want)
			}
		})
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there tables.Group
		gone  []ledger.Cut
		want  Presence
	}{
		"all":                    {there(3, 10, 100), nil, Whole},
		"nothing":                {tables.Group{Pos: 3}, nil, Absent},
		"a row missing":          {there(3, 9, 90), nil, Partly},
		"others":                 {there(3, 10, 7), nil, Partly},
		"one erased":             {there(3, 9, 93), []ledger.Cut{{Pos: 3, Rows: 1, IDs: 7}}, Whole},
		"one erased, twice told": {there(3, 8, 90), []ledger.Cut{{Pos: 3, Rows: 1, IDs: 7}, {Pos: 3, Rows: 1, IDs: 3}}, Whole},
		"to be erased":           {there(3, 10, 100), []ledger.Cut{{Pos: 3, Rows: 1, IDs: 7}}, Whole},
		"erased whole":           {tables.Group{Pos: 3}, []ledger.Cut{{Pos: 3, Rows: 10, IDs: 100}}, Whole},
		"erased elsewhere":       {tables.Group{Pos: 3}, []ledger.Cut{{Pos: 2, Rows: 10, IDs: 100}}, Absent},
		"erased in part":         {tables.Group{Pos: 3}, []ledger.Cut{{Pos: 3, Rows: 4, IDs: 40}}, Absent},
		"erased, joined":         {tables.Group{Pos: 3}, []ledger.Cut{{From: 2, Pos: 4, Rows: 9, IDs: 1}}, Whole},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := At(3, 10, 100, c.there, c.gone); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// Whatever frames are held and whatever was erased, rows that are what the frames brought differ
// nowhere; one row more, less, changed or moved does, in a stretch that has its position.
func TestCompareAnyFrames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint64Range(1, 30).Draw(rt, "positions")
		var all []Frame
		var rows []tables.Group
		var gone []ledger.Cut
		var total, ids uint64
		for pos := uint64(1); pos <= n; pos++ {
			g := tables.Group{Pos: pos}
			brought := rapid.Uint64Range(1, 5).Draw(rt, "rows")
			var taken ledger.Cut
			for range brought {
				id := rapid.Uint64Min(1).Draw(rt, "id")
				ids += id
				if rapid.IntRange(0, 3).Draw(rt, "erased") == 0 {
					taken = ledger.Cut{Pos: pos, Rows: taken.Rows + 1, IDs: taken.IDs + id}
				} else {
					g.Rows, g.Distinct, g.IDs = g.Rows+1, g.Distinct+1, g.IDs+id
				}
			}
			total += brought
			all = append(all, Frame{Pos: pos, Rows: brought, ShardRows: total, ShardIDs: ids})
			if taken.Rows > 0 {
				gone = append(gone, taken)
			}
			if g.Rows > 0 {
				rows = append(rows, g)
			}
		}
		joined := ledger.AddCuts(gone, nil)
		if len(gone) > 1 && rapid.Bool().Draw(rt, "join") {
			at := rapid.IntRange(0, len(gone)-2).Draw(rt, "joined")
			a, b := gone[at], gone[at+1]
			joined = append(slices.Clone(gone[:at]), append([]ledger.Cut{{From: a.Pos, Pos: b.Pos, Rows: a.Rows + b.Rows, IDs: a.IDs + b.IDs}}, gone[at+2:]...)...)
		}
		var held []Frame
		for _, f := range all {
			if rapid.IntRange(0, 4).Draw(rt, "held") > 0 {
				held = append(held, f)
			}
		}
		stretches, _ := Compare(held, rows, joined)
		if d := Differing(stretches); len(d) > 0 {
			rt.Fatalf("%+v differ, and all is as it was brought: %v, %v, %v", d, held, rows, joined)
		}
		if len(rows) == 0 {
			return
		}
		at := rapid.IntRange(0, len(rows)-1).Draw(rt, "at")
		pos := rows[at].Pos
		if pos == rows[len(rows)-1].Pos {
			return // its group may vanish: what is not stored yet is not compared
		}
		compared := slices.IndexFunc(stretches, func(s Stretch) bool { return s.Lo < pos && pos <= s.Hi })
		if compared < 0 {
			return // above what the frames tell
		}
		how := rapid.SampledFrom([]string{"less", "more", "changed"}).Draw(rt, "how")
		if how == "changed" && !stretches[compared].Summed {
			return
		}
		switch g := &rows[at]; how {
		case "less":
			g.Rows, g.Distinct = g.Rows-1, g.Distinct-1
		case "more":
			g.Rows, g.Distinct = g.Rows+1, g.Distinct+1
		case "changed":
			g.IDs++
		}
		stretches, _ = Compare(held, rows, joined)
		if d := Differing(stretches); len(d) != 1 || !(d[0].Lo < pos && pos <= d[0].Hi) {
			rt.Fatalf("a row %s at %d: %+v differ", how, pos, d)
		}
	})
}

// Many positions cost their number, not its square.
func TestCompareIsLinear(t *testing.T) {
	t.Parallel()
	var rows []tables.Group
	var frames []Frame
	var gone []ledger.Cut
	for pos := uint64(1); pos <= 300_000; pos++ {
		frames = append(frames, Frame{Pos: pos, Rows: 10, ShardRows: 10 * pos, ShardIDs: 100 * pos})
		if rows = append(rows, there(pos, 10, 100)); pos%200 == 0 {
			rows[pos-1] = there(pos, 9, 90)
			gone = append(gone, ledger.Cut{Pos: pos, Rows: 1, IDs: 10})
		}
	}
	all, _ := Compare(frames, rows, gone)
	if d := Differing(all); len(all) != 300_000 || len(d) > 0 {
		t.Error(len(all), fmt.Sprintf("%.300v", d))
	}
}
