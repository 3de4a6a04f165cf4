package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// The ledger keeps entries by compare-and-set; an erasure record takes one pending erasure
// at a time and books it once, with the shard's rows.
func TestLedgerEntries(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	for i := range 3 {
		if _, err := r.Enter(ctx, ledger.Erasure{ID: fmt.Sprintf("e%d", i), Topic: "app", Fence: uint64(10 * i), State: ledger.Waiting}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Enter(ctx, ledger.Erasure{ID: "e1", Topic: "app"}); !errors.Is(err, ErrConflict) {
		t.Errorf("an id twice: %v", err)
	}
	if _, err := r.Enter(ctx, ledger.Erasure{ID: "e9", Topic: "app", Where: strings.Repeat("x", ledger.MaxErasureBytes)}); !errors.Is(err, ErrLedgerFull) {
		t.Errorf("too large an entry: %v", err)
	}
	heavy := ledger.Erasure{ID: "e8", Topic: "app", Cond: "`message` = {p1:String}", Params: map[string]string{}}
	for i := range ledger.MaxTerms {
		heavy.Params[fmt.Sprintf("p%d", i)] = ""
	}
	if _, err := r.Enter(ctx, heavy); !errors.Is(err, ErrLedgerFull) || !strings.Contains(err.Error(), "comparisons") {
		t.Errorf("too many comparisons: %v", err)
	}
	e, err := r.AmendErasure(ctx, "app", "e1", func(e *ledger.Erasure) bool { e.State = ledger.Erased; return true })
	if err != nil || e.State != ledger.Erased || e.Fence != 10 {
		t.Fatalf("%+v, %v", e, err)
	}
	cache := NewLedgerCache(r)
	l, err := cache.Of(ctx, "app")
	if err != nil || len(l) != 3 || l[0].ID != "e2" || l.Alike(schemas.Source{Seq: 10}, schemas.Source{Seq: 11}) || !l.Alike(schemas.Source{Seq: 11}, schemas.Source{Seq: 20}) || len(l.Only(ledger.Erased)) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	if l, err := cache.Of(ctx, "other"); err != nil || len(l) != 0 {
		t.Fatalf("%+v, %v", l, err)
	}

	record, err := r.ErasureRecord(ctx, s.Ref())
	if err != nil {
		t.Fatal(err)
	}
	late := record
	if err := r.Begin(ctx, &record, ledger.Pending{Erasure: "e1", Cuts: []ledger.Cut{{Pos: 4, Rows: 2}, {Pos: 9, Rows: 3}}, Rows: 5, Before: 12}); err != nil {
		t.Fatal(err)
	}
	if err := r.Begin(ctx, &late, ledger.Pending{Erasure: "e2"}); !errors.Is(err, ErrConflict) {
		t.Errorf("two pending at once: %v", err)
	}
	if least, most := record.GoneUpTo(8); least != 0 || most != 2 {
		t.Errorf("pending: %d to %d rows are gone", least, most)
	}
	twin := record
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
	if err := r.Book(ctx, &record, ledger.Receipt{Rows: 5, Before: 12}, 0, count); err != nil {
		t.Fatal(err)
	}
	if now, err := r.Shard(ctx, s.Ref()); err != nil || now.Rows != 9 {
		t.Errorf("closed with 9 rows, booked as %d (%v)", now.Rows, err)
	}
	if err := r.Book(ctx, &twin, ledger.Receipt{Rows: 5}, 0, func(context.Context) (uint64, error) { return 7, nil }); !errors.Is(err, ErrConflict) {
		t.Errorf("booked twice: %v", err)
	}
	all, err := r.ErasureRecords(ctx, "app")
	got := all[s.ID]
	if least, most := got.GoneUpTo(9); err != nil || len(all) != 1 || least != 5 || most != 5 || got.Receipts["e1"].After != 9 || got.Pending != nil {
		t.Errorf("booked: %+v (%v)", all, err)
	}
	if err := r.ForgetErasure(ctx, "app", "e0"); !errors.Is(err, ErrConflict) {
		t.Errorf("forgetting one that has not ended: %v", err)
	}
	if err := r.Begin(ctx, &got, ledger.Pending{Erasure: "e1"}); err != nil {
		t.Fatal(err)
	}
	if err := r.ForgetErasure(ctx, "app", "e1"); !errors.Is(err, ErrConflict) {
		t.Errorf("forgetting one that is under way in a shard: %v", err)
	}
	if err := r.Book(ctx, &got, ledger.Receipt{Rows: 5, Before: 12, Dropped: true}, 0, func(context.Context) (uint64, error) { return 7, nil }); err != nil {
		t.Fatal(err)
	}
	if err := r.ForgetErasure(ctx, "app", "e1"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Erasure(ctx, "app", "e1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("it was forgotten: %v", err)
	}
	got, err = r.ErasureRecord(ctx, s.Ref())
	if least, most := got.GoneUpTo(9); err != nil || least != 5 || most != 5 || len(got.Receipts) != 0 || got.Forgotten == nil || got.Forgotten.Rows != 5 || !got.Dropped() {
		t.Errorf("the record of what was forgotten: %+v (%v)", got, err)
	}
	// Neither the topic's heads nor its shards are confused by the ledger's keys.
	if heads, err := r.Heads(ctx, "app"); err != nil || len(heads) != 1 {
		t.Errorf("%d heads, %v", len(heads), err)
	}
}

// The entry of a shard that was closed before its rows were counted has what its frames brought without what erasures took, however
// many rows a ClickHouse from an older copy has meanwhile.
func TestBookOfAClosedShard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows, brought uint64 // of the entry, by its frames
		counted       uint64
		took          uint64
		want          uint64
	}{
		"for the first time":                {100, 100, 90, 10, 90},
		"rows lack":                         {100, 100, 81, 10, 90},
		"the frames are not known":          {100, 0, 81, 10, 90},
		"closed when the rows were back":    {100, 100, 90, 10, 90},
		"as many lack as came back, before": {90, 100, 81, 10, 90},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ctx, s := placed(t, 0)
			now, err := r.Shard(ctx, s.Ref())
			if now.Status, now.Rows = Closed, c.rows; err == nil {
				err = r.commit(ctx, &change{key: now.key(), rev: now.rev, v: &now})
			}
			if err != nil {
				t.Fatal(err)
			}
			record, err := r.ErasureRecord(ctx, s.Ref())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Begin(ctx, &record, ledger.Pending{Erasure: "e", Closed: true, Cuts: []ledger.Cut{{Pos: 4, Rows: c.took}}, Rows: c.took}); err != nil {
				t.Fatal(err)
			}
			if err := r.Book(ctx, &record, ledger.Receipt{Rows: c.took}, c.brought, func(context.Context) (uint64, error) { return c.counted, nil }); err != nil {
				t.Fatal(err)
			}
			if now, err := r.Shard(ctx, s.Ref()); err != nil || now.Rows != c.want {
				t.Errorf("%d rows, want %d (%v)", now.Rows, c.want, err)
			}
		})
	}
}
