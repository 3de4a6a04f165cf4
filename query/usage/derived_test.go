package usage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// february is the month of s1's diffs, each stored three times.
func (r *rig) february() (req Request, want string) {
	r.t.Helper()
	for range 3 {
		for i, d := range []struct {
			when  string
			delta int64
		}{{"2026-02-01T00:00:00Z", 100}, {"2026-02-10T12:00:00Z", 50}, {"2026-02-20T00:00:00Z", -30}} {
			r.insert(row{meter: "bytes", provider: "p", space: "s1", cause: fmt.Sprint("c-", i), customer: "u", delta: d.delta, ms: at(r.t, d.when).UnixMilli(), shard: uint64(i % 2)})
		}
	}
	return Request{From: at(r.t, "2026-02-01T00:00:00Z"), To: at(r.t, "2026-03-01T00:00:00Z"), GroupBy: ByCustomer}, "0 120 298512000000 3 6"
}

func (r *rig) expect(what string, req Request, want string) {
	r.t.Helper()
	b := r.one(req)
	if got := fmt.Sprintf("%s %s %s %d %d", b.SizeStart, b.SizeEnd, b.Usage, b.Causes, b.Repeats); got != want {
		r.t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// Sums that lost rows are not believed, and filled again.
func TestSpoiledSums(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	req, want := r.february()
	if dropped := r.round(""); len(dropped) > 0 {
		t.Errorf("dropped: %v", dropped)
	}
	r.expect("summed", req, want)
	sums := schemas.QuotedTable(r.db.Database, "usage.sums")
	r.exec("ALTER TABLE " + sums + " DELETE WHERE space != '' AND shard IN (SELECT min(shard) FROM " + sums + ") SETTINGS mutations_sync = 2")
	r.expect("a row of the sums lost", req, want)
	if dropped := r.round(""); len(dropped) != 1 || !strings.Contains(dropped[0], "which its rows do not") {
		t.Errorf("dropped: %v", dropped)
	}
	d, err := r.db.Derived(t.Context(), &r.topic)
	if err != nil {
		t.Fatal(err)
	}
	for ref, s := range d.Shards {
		if !s.Sums.Exact() || s.Sums.Pos != s.Stored.Head || s.Examined != s.Stored.Head {
			t.Errorf("%s: %+v", ref, s)
		}
	}
	r.expect("healed", req, want)
}

// A copy that a repair stores at a position which was examined counts once, also before it
// is examined.
func TestRowsAtExaminedPositions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	req, want := r.february()
	r.round("")
	for ref := range r.pos {
		r.pos[ref] = 0 // below all that was stored; three at most are added to it
	}
	before := r.one(req).Repeats
	late := row{meter: "bytes", provider: "p", space: "s1", cause: "c-0", customer: "u", delta: 100, ms: at(t, "2026-02-03T00:00:00Z").UnixMilli()}
	r.pos[late.ref()] = 0
	r.insert(late)
	want = strings.Replace(want, fmt.Sprint(before), fmt.Sprint(before+1), 1)
	r.expect("stored again", req, want)
	if dropped := r.round(""); len(dropped) == 0 || !strings.Contains(dropped[0], "other rows") {
		t.Errorf("dropped: %v", dropped)
	}
	r.expect("examined again", req, want)
}

// An examination that began before what was derived was dropped does not say that marks are
// there which went with it.
func TestStaleExamination(t *testing.T) {
	t.Parallel()
	for name, began := range map[string]bool{"before the first": false, "after another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			diff := row{meter: "bytes", provider: "p", space: "s1", cause: "c-1", customer: "u", delta: 1, ms: at(t, "2026-02-03T00:00:00Z").UnixMilli()}
			r.insert(diff)
			r.insert(diff) // a copy
			if began {
				r.round("")
				later := diff
				later.cause = "c-2"
				r.insert(later)
			} else if err := r.db.ExamineRepeats(t.Context(), &r.topic, diff.ref(), 0, 0, 1); err != nil { // as far as its first insert
				t.Fatal(err)
			}
			d, err := r.db.Derived(t.Context(), &r.topic)
			if err != nil {
				t.Fatal(err)
			}
			was := d.Shards[diff.ref()]
			if err := r.db.DropDerived(t.Context(), diff.ref()); err != nil {
				t.Fatal(err)
			}
			if err := r.db.ExamineRepeats(t.Context(), &r.topic, diff.ref(), was.Epoch, was.Examined, was.Stored.Head); !errors.Is(err, tables.ErrHeadMoved) {
				t.Errorf("an examination of what was dropped: %v", err)
			}
			req := Request{From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z"), GroupBy: ByCustomer}
			want := fmt.Sprint(len(map[bool]string{true: "ab", false: "a"}[began]))
			for _, when := range []string{"refused", "derived again"} {
				if b := r.one(req); b.SizeEnd != want || b.Repeats != 1 {
					t.Errorf("%s: %+v, want %s", when, b, want)
				}
				r.round("")
			}
		})
	}
}

// When the event that counts is erased the next one counts.
func TestErasedFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := row{meter: "bytes", provider: "p", space: "s1", cause: "c", customer: "u", delta: 7, ms: at(t, "2026-01-31T23:00:00Z").UnixMilli()}
	again := first
	again.ms = at(t, "2026-02-02T00:00:00Z").UnixMilli()
	r.insert(again)
	r.insert(first)
	r.round("")
	req := Request{From: at(t, "2026-01-01T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z")}
	r.expect("both", req, fmt.Sprintf("0 7 %d 1 1", 7*(req.To.UnixMilli()-first.ms)))
	if err := r.db.DropShard(t.Context(), "usage", first.ref().Month, first.ref().ID); err != nil {
		t.Fatal(err)
	}
	if err := r.db.DropDerived(t.Context(), first.ref()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("0 7 %d 1 0", 7*(req.To.UnixMilli()-again.ms))
	r.expect("the first erased", req, want)
	r.round("")
	r.expect("derived again", req, want)
}

// Of a month that retention dropped the sums stay: whole days are answered, and a range that
// cuts one is refused with its edges.
func TestDroppedMonth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	req, want := r.february()
	r.round("")
	stored, err := r.db.AllStored(t.Context(), "usage")
	if err != nil {
		t.Fatal(err)
	}
	for ref, s := range stored {
		err := r.reg.RestoreShard(t.Context(), registry.Shard{Topic: "usage", Month: ref.Month, ID: ref.ID, Status: registry.Dropped, SealedAt: s.Head, Floor: s.Head,
			MinTs: s.MinTs, MaxTs: s.MaxTs, DroppedRows: s.Rows, DroppedAt: time.Now().UTC(), CreatedAt: time.Now().UTC()})
		if err == nil {
			err = r.db.DropShard(t.Context(), "usage", ref.Month, ref.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.expect("dropped", req, want)
	r.round("")
	r.expect("after a round", req, want)
	req.From, req.To = at(t, "2026-02-10T00:00:00Z"), at(t, "2026-02-20T00:00:00Z")
	r.expect("days", req, "100 150 127440000000 2 4")
	req.Space, req.GroupBy = "s1", Total
	r.expect("days of a space", req, "100 150 127440000000 2 4")
	req.From = at(t, "2026-02-10T18:00:00Z")
	req.Topic = "usage"
	_, err = r.read.Report(t.Context(), req)
	if !errors.Is(err, ErrCut) || !errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), "take 2026-02-10T00:00:00Z or 2026-02-11T00:00:00Z") {
		t.Errorf("a cut day: %v", err)
	}
	if _, err := r.read.Diffs(t.Context(), req, 0, ""); !errors.Is(err, ErrCut) {
		t.Errorf("diffs: %v", err)
	}
}
