package registry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

// An erasure concerns a frame up to its fence whose times overlap; of many, those
// that concern it and no other.
func TestCovering(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		small := rapid.Int64Range(0, 20)
		l := &Ledger{}
		for i := range rapid.IntRange(0, 6).Draw(rt, "erasures") {
			from := small.Draw(rt, "from")
			l.Erasures = append(l.Erasures, Erasure{
				ID: fmt.Sprint(i), Fence: uint64(small.Draw(rt, "fence")), FenceTime: small.Draw(rt, "fence time"),
				From: from, To: from + small.Draw(rt, "span"),
			})
		}
		// As Ledger sorts them.
		for i := range l.Erasures {
			for j := range i {
				if l.Erasures[j].Fence < l.Erasures[i].Fence {
					l.Erasures[i], l.Erasures[j] = l.Erasures[j], l.Erasures[i]
				}
			}
		}
		s, lo := schemas.Source{Seq: uint64(small.Draw(rt, "seq")), Stored: small.Draw(rt, "stored")}, small.Draw(rt, "lo")
		hi := lo + small.Draw(rt, "length")
		got := map[string]bool{}
		for _, e := range l.Covering(s, lo, hi) {
			got[e.ID] = true
		}
		for _, e := range l.Erasures {
			later := s.Stored != 0 && e.FenceTime != 0 && s.Stored > e.FenceTime
			want := s.Seq <= e.Fence && !later && !(hi < e.From || lo > e.To)
			if got[e.ID] != want {
				rt.Fatalf("frame %+v [%d, %d], erasure %+v: covering is %v", s, lo, hi, e, got[e.ID])
			}
		}
		// Frames that are alike may share a statement: the same erasures concern them
		// where their times are the same.
		other := schemas.Source{Seq: uint64(small.Draw(rt, "other seq")), Stored: small.Draw(rt, "other stored")}
		same := true
		for _, e := range l.Erasures {
			same = same && len((&Ledger{Erasures: []Erasure{e}}).Covering(s, e.From, e.To)) == len((&Ledger{Erasures: []Erasure{e}}).Covering(other, e.From, e.To))
		}
		if l.Alike(s, other) != same {
			rt.Fatalf("%+v and %+v under %+v: alike is %v", s, other, l.Erasures, !same)
		}
	})
}

// Conditions of several erasures share a statement: their parameters keep apart.
func TestKeep(t *testing.T) {
	cond, params := Cover{}.Keep()
	if cond != "1" || len(params) != 0 {
		t.Errorf("an empty cover keeps %q", cond)
	}
	one := Erasure{Cond: "`user_id` = {p1:String} AND `attributes`[{p2:String}] = {p3:String}", Params: map[string]string{"p1": "u", "p2": "k", "p3": "{p1}"}, To: math.MaxInt64, Schema: 2}
	c := Cover{one, one}
	cond, params = c.Keep()
	if len(params) != 6 || params["e0p1"] != "u" || params["e1p3"] != "{p1}" || c.Schema() != 2 {
		t.Errorf("parameters %v, schema %d", params, c.Schema())
	}
	for _, want := range []string{"NOT (", "{e0p1:String}", "{e1p2:String}", " AND NOT ("} {
		if !strings.Contains(cond, want) {
			t.Errorf("%s\nlacks %s", cond, want)
		}
	}
}

// Cuts sum up to the same whatever their order, and a list that was shortened
// never says that more is gone than is.
func TestCuts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) Cut {
			return Cut{Pos: rapid.Uint64Range(1, 9000).Draw(rt, "pos"), Rows: rapid.Uint64Range(1, 9).Draw(rt, "rows"), IDs: rapid.Uint64().Draw(rt, "ids"), Summed: rapid.IntRange(0, 9).Draw(rt, "summed") > 0}
		}), 0, 60)
		a, b := draw.Draw(rt, "a"), draw.Draw(rt, "b")
		if rapid.Bool().Draw(rt, "long") {
			for i := range uint64(3 * MaxCuts) {
				b = append(b, Cut{Pos: i + 1, Rows: i % 3, IDs: i * i, Summed: true})
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
		ofA, knownA := SumIDs(a, pos)
		ofB, knownB := SumIDs(b, pos)
		ids, known := SumIDs(sum, pos)
		if pos >= 9000 && (known != (knownA && knownB) || known && ids != ofA+ofB) {
			rt.Fatalf("the ids that are gone up to %d sum up to %x, known: %v; the two lists say %x, %v and %x, %v", pos, ids, known, ofA, knownA, ofB, knownB)
		}
	})
}

func TestLastCut(t *testing.T) {
	t.Parallel()
	tally := Tally{Gone: []Cut{{Pos: 4, Rows: 2}, {Pos: 9, Rows: 3}}, Pending: &Pending{Cuts: []Cut{{Pos: 6, Rows: 1}}}}
	for pos, want := range map[uint64]uint64{3: 0, 4: 4, 5: 4, 8: 6, 9: 9, 20: 9} {
		if got := tally.LastCut(pos); got != want {
			t.Errorf("up to %d: %d, want %d", pos, got, want)
		}
	}
}

func TestPurgedSpans(t *testing.T) {
	var tally Tally
	tally.AddPurged(7, 3, 4, 9, 5, 4)
	if fmt.Sprint(tally.Purged) != "[{3 5} {7 7} {9 9}]" || tally.PurgedPositions() != 5 || tally.IsPurged(6) || !tally.IsPurged(4) {
		t.Errorf("%v", tally.Purged)
	}
}

// The ledger keeps entries by compare-and-set; a tally takes one pending erasure
// at a time and books it once, with the shard's rows.
func TestLedgerEntries(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	for i := range 3 {
		if _, err := r.Enter(ctx, Erasure{ID: fmt.Sprintf("e%d", i), Topic: "app", Fence: uint64(10 * i), State: Settling}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Enter(ctx, Erasure{ID: "e1", Topic: "app"}); !errors.Is(err, ErrConflict) {
		t.Errorf("an id twice: %v", err)
	}
	if _, err := r.Enter(ctx, Erasure{ID: "e9", Topic: "app", Where: strings.Repeat("x", MaxErasureBytes)}); !errors.Is(err, ErrLedgerFull) {
		t.Errorf("too large an entry: %v", err)
	}
	e, err := r.AmendErasure(ctx, "app", "e1", func(e *Erasure) bool { e.State = Erased; return true })
	if err != nil || e.State != Erased || e.Fence != 10 {
		t.Fatalf("%+v, %v", e, err)
	}
	cache := NewLedgerCache(r)
	l, err := cache.Of(ctx, "app")
	if err != nil || len(l.Erasures) != 3 || l.Erasures[0].ID != "e2" || l.Alike(schemas.Source{Seq: 10}, schemas.Source{Seq: 11}) || !l.Alike(schemas.Source{Seq: 11}, schemas.Source{Seq: 20}) || len(l.Only(Erased).Erasures) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	if l, err := cache.Of(ctx, "other"); err != nil || len(l.Erasures) != 0 {
		t.Fatalf("%+v, %v", l, err)
	}

	tally, err := r.Tally(ctx, s.Ref())
	if err != nil {
		t.Fatal(err)
	}
	late := tally
	if err := r.Begin(ctx, &tally, Pending{Erasure: "e1", Cuts: []Cut{{Pos: 4, Rows: 2}, {Pos: 9, Rows: 3}}, Rows: 5, Before: 12}); err != nil {
		t.Fatal(err)
	}
	if err := r.Begin(ctx, &late, Pending{Erasure: "e2"}); !errors.Is(err, ErrConflict) {
		t.Errorf("two pending at once: %v", err)
	}
	if least, most := tally.GoneUpTo(8); least != 0 || most != 2 {
		t.Errorf("pending: %d to %d rows are gone", least, most)
	}
	twin := tally
	// The shard is sealed, stored whole and closed while its rows are counted: the
	// count is taken again.
	counts := []uint64{7, 9}
	count := func(context.Context) (uint64, error) {
		n := counts[0]
		if counts = counts[1:]; n == 7 {
			now, err := r.Shard(ctx, s.Ref())
			if err != nil {
				return 0, err
			}
			now.Status, now.Rows = Closed, 9
			return n, r.commit(ctx, &change{key: now.key(), rev: now.rev, v: &now})
		}
		return n, nil
	}
	if err := r.Book(ctx, &tally, Receipt{Rows: 5, Before: 12}, count); err != nil {
		t.Fatal(err)
	}
	if now, err := r.Shard(ctx, s.Ref()); err != nil || now.Rows != 9 {
		t.Errorf("closed with 9 rows, booked as %d (%v)", now.Rows, err)
	}
	if err := r.Book(ctx, &twin, Receipt{Rows: 5}, func(context.Context) (uint64, error) { return 7, nil }); !errors.Is(err, ErrConflict) {
		t.Errorf("booked twice: %v", err)
	}
	all, err := r.Tallies(ctx, "app")
	got := all[s.ID]
	if least, most := got.GoneUpTo(9); err != nil || len(all) != 1 || least != 5 || most != 5 || got.Receipts["e1"].After != 9 || got.Pending != nil {
		t.Errorf("booked: %+v (%v)", all, err)
	}
	if err := r.ForgetErasure(ctx, "app", "e0"); !errors.Is(err, ErrConflict) {
		t.Errorf("forgetting one that has not ended: %v", err)
	}
	if err := r.Begin(ctx, &got, Pending{Erasure: "e1"}); err != nil {
		t.Fatal(err)
	}
	if err := r.ForgetErasure(ctx, "app", "e1"); !errors.Is(err, ErrConflict) {
		t.Errorf("forgetting one that is under way in a shard: %v", err)
	}
	if err := r.Book(ctx, &got, Receipt{Rows: 5, Before: 12, Dropped: true}, func(context.Context) (uint64, error) { return 7, nil }); err != nil {
		t.Fatal(err)
	}
	if err := r.ForgetErasure(ctx, "app", "e1"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Erasure(ctx, "app", "e1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("it was forgotten: %v", err)
	}
	got, err = r.Tally(ctx, s.Ref())
	if least, most := got.GoneUpTo(9); err != nil || least != 5 || most != 5 || len(got.Receipts) != 0 || got.Forgotten == nil || got.Forgotten.Rows != 5 || !got.Dropped() {
		t.Errorf("the tally of what was forgotten: %+v (%v)", got, err)
	}
	// Neither the topic's heads nor its shards are confused by the ledger's keys.
	if heads, err := r.Heads(ctx, "app"); err != nil || len(heads) != 1 {
		t.Errorf("%d heads, %v", len(heads), err)
	}
}
