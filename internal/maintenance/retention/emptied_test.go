package retention

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// A sink that slept over the erasure of a whole shard stores its frames again, for
// ClickHouse forgot the tokens with the partition: the next round drops them. Rows
// of a shard of which no receipt says that it was dropped are left alone.
func TestErasedShardStaysGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, first := r.closed(3)
	const erasure = "20261121-120000-aabbcc"
	erase := func(rows uint64, dropped bool) {
		t.Helper()
		record, err := r.Registry.ErasureRecord(t.Context(), s.Ref())
		if err == nil {
			err = r.Registry.Begin(t.Context(), &record, ledger.Pending{Erasure: erasure, Cuts: []ledger.Cut{{Pos: 3, Rows: rows}}, Rows: rows, Before: rows, At: t0, Drop: dropped})
		}
		if err == nil {
			_, err = r.Registry.RaiseFloor(t.Context(), s.Ref(), 3)
		}
		if err == nil {
			err = r.DB.DropShard(t.Context(), s.Ref())
		}
		if err == nil {
			err = r.Registry.Book(t.Context(), &record, ledger.Receipt{Rows: rows, Before: rows, Dropped: dropped, RewrittenAt: t0}, 0, func(context.Context) (uint64, error) { return 0, nil })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	slept := func() {
		t.Helper()
		if err := r.DB.Insert(t.Context(), &tables.Insert{Topic: &r.Topic, Schema: 1, Month: november, Shard: s.ID, Frames: []tables.Frame{{Pos: 1, Rows: 10, Payload: first}}}); err != nil {
			t.Fatal(err)
		}
		if rows, _, _ := r.Rows(); rows != 10 {
			t.Fatalf("%d rows, want 10: the test does not bite", rows)
		}
	}
	janitor := func() (faults []error) {
		t.Helper()
		r.retain(time.Now(), "", func(c *Config) { c.Hooks.Fault = func(_ schemas.ShardRef, err error) { faults = append(faults, err) } })
		return faults
	}
	erase(30, false)
	slept()
	if faults := janitor(); len(faults) != 0 {
		t.Errorf("without a receipt of a drop: %v", faults)
	}
	if rows, _, _ := r.Rows(); rows != 10 {
		t.Errorf("%d rows are left of 10 that were not dropped", rows)
	}
	erase(10, true)
	if faults := janitor(); len(faults) != 0 {
		t.Errorf("with nothing there: %v", faults)
	}
	slept()
	if faults := janitor(); len(faults) != 1 || !errors.Is(faults[0], ErrCameBack) {
		t.Errorf("faults: %v", faults)
	}
	if rows, _, _ := r.Rows(); rows != 0 {
		t.Errorf("%d rows are back", rows)
	}
}
