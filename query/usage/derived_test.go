package usage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// february is the month of s1's diffs, each stored three times.
func (r *rig) february() (req Request, want string) {
	r.T.Helper()
	for range 3 {
		for i, d := range []struct {
			when  string
			delta int64
		}{{"2026-02-01T00:00:00Z", 100}, {"2026-02-10T12:00:00Z", 50}, {"2026-02-20T00:00:00Z", -30}} {
			r.insert(row{meter: "bytes", provider: "p", space: "s1", cause: fmt.Sprint("c-", i), customer: "u", delta: d.delta, ms: at(r.T, d.when).UnixMilli(), shard: uint64(i % 2)})
		}
	}
	return Request{From: at(r.T, "2026-02-01T00:00:00Z"), To: at(r.T, "2026-03-01T00:00:00Z"), GroupBy: ByCustomer}, "0 120 298512000000 3 6"
}

func (r *rig) expect(what string, req Request, want string) {
	r.T.Helper()
	b := r.one(req)
	if got := fmt.Sprintf("%s %s %s %d %d", b.SizeStart, b.SizeEnd, b.Usage, b.Causes, b.Repeats); got != want {
		r.T.Errorf("%s: %s, want %s", what, got, want)
	}
}

// A topic that nothing came to has no table for some seconds; usage is zero then, and not an error.
func TestNoTableYet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Exec("DROP TABLE " + sql.QuotedTable(r.DB.Database, "usage") + " SYNC")
	req := Request{From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z")}
	r.expect("nothing came", req, "0 0 0 0 0")
	req.Space = "s1"
	r.expect("nothing came to a space", req, "0 0 0 0 0")
	req.GroupBy = BySpace
	if rep := r.report(req); len(rep.Bills) > 0 {
		t.Errorf("bills of nothing: %+v", rep.Bills)
	}
	if got := r.sizes(SizeRequest{At: req.From}); got != "0 0 0; " {
		t.Errorf("the size of nothing: %s", got)
	}
	req.Topic = "usage"
	if page, err := r.read.Diffs(t.Context(), req, 0, ""); err != nil || len(page.Diffs) > 0 {
		t.Errorf("diffs of nothing: %+v, %v", page, err)
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
	sums := sql.QuotedTable(r.DB.Database, "usage.sums")
	r.Exec("ALTER TABLE " + sums + " DELETE WHERE space != '' AND shard IN (SELECT min(shard) FROM " + sums + ") SETTINGS mutations_sync = 2")
	r.expect("a row of the sums lost", req, want)
	if dropped := r.round(""); len(dropped) != 1 || !strings.Contains(dropped[0], "which its rows do not") {
		t.Errorf("dropped: %v", dropped)
	}
	d, err := derived.Of(r.DB).State(t.Context(), &r.Topic)
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
	for ref := range r.Pos {
		r.Pos[ref] = 0 // below all that was stored; three at most are added to it
	}
	before := r.one(req).Repeats
	late := row{meter: "bytes", provider: "p", space: "s1", cause: "c-0", customer: "u", delta: 100, ms: at(t, "2026-02-03T00:00:00Z").UnixMilli()}
	r.Pos[late.ref()] = 0
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
func TestStaleDerivedState(t *testing.T) {
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
			} else if err := derived.Of(r.DB).ExamineRepeats(t.Context(), &r.Topic, diff.ref(), 0, 0, 1); err != nil { // as far as its first insert
				t.Fatal(err)
			}
			d, err := derived.Of(r.DB).State(t.Context(), &r.Topic)
			if err != nil {
				t.Fatal(err)
			}
			was := d.Shards[diff.ref()]
			if err := derived.Of(r.DB).Drop(t.Context(), diff.ref(), r.Reg.DerivedDropper("usage")); err != nil {
				t.Fatal(err)
			}
			if err := derived.Of(r.DB).ExamineRepeats(t.Context(), &r.Topic, diff.ref(), was.Epoch, was.Examined, was.Stored.Head); !errors.Is(err, tables.ErrHeadMoved) {
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
	if err := r.DB.DropShard(t.Context(), first.ref()); err != nil {
		t.Fatal(err)
	}
	if err := derived.Of(r.DB).Drop(t.Context(), first.ref(), r.Reg.DerivedDropper("usage")); err != nil {
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
	r.drop(schemas.Month(202602))
	r.expect("dropped", req, want)
	r.round("")
	r.expect("after a round", req, want)
	req.From, req.To = at(t, "2026-02-10T00:00:00Z"), at(t, "2026-02-20T00:00:00Z")
	r.expect("days", req, "100 150 127440000000 2 4")
	req.Space, req.GroupBy = "s1", Total
	r.expect("days of a space", req, "100 150 127440000000 2 4")
	req.From = at(t, "2026-02-10T18:00:00Z")
	req.Topic = "usage"
	_, err := r.read.Report(t.Context(), req)
	if !errors.Is(err, ErrCut) || !errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), "take 2026-02-10T00:00:00Z or 2026-02-11T00:00:00Z") {
		t.Errorf("a cut day: %v", err)
	}
	if _, err := r.read.Diffs(t.Context(), req, 0, ""); !errors.Is(err, ErrCut) {
		t.Errorf("diffs: %v", err)
	}
	err = r.read.Sizes(t.Context(), SizeRequest{Topic: "usage", At: at(t, "2026-02-10T18:00:00Z")}, func(Size) error { return nil })
	const before, after = "2026-02-09T23:59:59.999Z", "2026-02-10T23:59:59.999Z"
	if !errors.Is(err, ErrCut) || !strings.Contains(err.Error(), "take "+before+" or "+after) {
		t.Errorf("a size within a day: %v", err)
	}
	for instant, want := range map[string]string{before: "100 1 2; ", after: "150 2 4; ", "2026-03-01T00:00:00Z": "120 3 6; "} {
		if got := r.sizes(SizeRequest{At: at(t, instant)}); got != want {
			t.Errorf("the size at %s: %s, want %s", instant, got, want)
		}
	}
}

// drop does to shards of a month what retention does.
func (r *rig) drop(month schemas.Month) {
	r.T.Helper()
	stored, err := r.DB.AllStored(r.T.Context(), "usage")
	if err != nil {
		r.T.Fatal(err)
	}
	for ref, s := range stored {
		if ref.Month != month {
			continue
		}
		err := r.Reg.RestoreShard(r.T.Context(), nil, registry.Shard{Topic: "usage", Month: ref.Month, ID: ref.ID, Status: registry.Dropped, SealedAt: s.Head, Floor: s.Head,
			MinTs: s.MinTs, MaxTs: s.MaxTs, DroppedRows: s.Rows, DroppedAt: time.Now().UTC(), CreatedAt: time.Now().UTC()})
		if err == nil {
			err = r.DB.DropShard(r.T.Context(), ref)
		}
		if err != nil {
			r.T.Fatal(err)
		}
		delete(r.Pos, ref)
	}
}

// Retention dropped the month of a diff that counts, and not that of its copy. The copy does
// not count, by whatever way a report goes: as it is, after an erasure, a repair or a rebuild
// of the shard that has the copy, and after one of another that has diffs of the same cause.
func TestCopyOfADroppedDiff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := row{meter: "bytes", provider: "p", space: "s1", cause: "c", customer: "u", delta: 100, ms: at(t, "2026-01-31T23:59:59.900Z").UnixMilli()}
	copied, late := first, first
	copied.ms = at(t, "2026-02-01T00:00:00.100Z").UnixMilli()
	late.ms, late.shard = at(t, "2026-02-03T00:00:00Z").UnixMilli(), 1
	early := first // a copy in the month that goes, of a diff of one that stays
	early.cause, early.ms, early.delta = "d", at(t, "2026-01-20T00:00:00Z").UnixMilli(), 7
	stays := early
	stays.ms = at(t, "2025-12-31T00:00:00Z").UnixMilli()
	r.insert(first)
	r.insert(copied)
	r.insert(early)
	r.insert(stays)
	r.round("")
	req := Request{From: at(t, "2026-01-01T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z")}
	want := fmt.Sprintf("7 107 %d 2", 100*(req.To.UnixMilli()-first.ms)+7*(req.To.UnixMilli()-req.From.UnixMilli()))
	check := func(when string) {
		t.Helper()
		for way, change := range map[string]func(*Request){
			"customer": func(q *Request) { q.Customer = "u" },
			"space":    func(q *Request) { q.Space, q.Provider, q.Meter = "s1", "p", "bytes" },
			"by cause": func(q *Request) { q.ByCause = true },
		} {
			q := req
			change(&q)
			b := r.one(q)
			if got := fmt.Sprintf("%s %s %s %d", b.SizeStart, b.SizeEnd, b.Usage, b.Causes); got != want {
				t.Errorf("%s, %s: %s, want %s", when, way, got, want)
			}
		}
	}
	check("all there")
	r.drop(schemas.Month(202601))
	check("dropped")
	r.insert(late)
	check("another copy")
	r.round("")
	check("another copy examined")
	for _, ref := range []schemas.ShardRef{copied.ref(), stays.ref(), late.ref()} {
		if err := derived.Of(r.DB).Drop(t.Context(), ref, r.Reg.DerivedDropper("usage")); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprint("derived of ", ref, " dropped"))
		r.round("")
		check(fmt.Sprint(ref, " derived again"))
	}
	if err := derived.Of(r.DB).DropAll(t.Context(), &r.Topic, r.Reg.DerivedDropper("usage")); err != nil {
		t.Fatal(err)
	}
	check("all derived dropped")
	r.round("")
	check("all derived again")
}

// A round that read the shards before retention dropped one leaves its sums alone.
func TestDroppedDuringARound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	req, want := r.february()
	r.round("")
	late := row{meter: "bytes", provider: "p", space: "s9", cause: "c", customer: "v", delta: 1, ms: at(t, "2026-03-01T00:00:00Z").UnixMilli()}
	r.insert(late) // so that the round examines
	u, err := rollups.New(rollups.Config{Registry: r.Reg, DB: r.DB, Crash: func(p string) {
		if p == "rollups.after-examine" {
			r.drop(schemas.Month(202602))
		}
	}, Hooks: rollups.Hooks{Fault: func(ref schemas.ShardRef, err error) { t.Errorf("%s: %v", ref, err) }}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	req.Customer = "u"
	r.expect("dropped meanwhile", req, want)
}
