package registry

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// Fields are not cleared below an erasure that has counted its rows, and none
// counts while they are cleared.
func TestClearing(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	now := time.Now().UTC()
	ref := schemas.ShardRef{Topic: "app", Month: november, ID: 3}
	before, err := r.ErasureRecord(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	if began, err := r.BeginClearing(ctx, ref, now); err != nil || !began {
		t.Fatal(began, err)
	}
	if err := r.Begin(ctx, &before, ledger.Pending{Erasure: "x"}); !errors.Is(err, ErrConflict) {
		t.Errorf("an erasure that counted before the clearing began: %v", err)
	}
	record, err := r.ErasureRecord(ctx, ref)
	if err != nil || !record.Clearing(now) || record.Clearing(now.Add(ledger.ClearingLapse)) {
		t.Errorf("%+v, %v", record, err)
	}
	if err := r.EndClearing(ctx, ref); err != nil {
		t.Fatal(err)
	}
	if record, err = r.ErasureRecord(ctx, ref); err == nil && !record.Clearing(now) {
		err = r.Begin(ctx, &record, ledger.Pending{Erasure: "x"})
	}
	if err != nil {
		t.Fatalf("%+v, %v", record, err)
	}
	if began, err := r.BeginClearing(ctx, ref, now.Add(time.Second)); err != nil || began {
		t.Errorf("below a pending erasure: %t, %v", began, err)
	}
}

// That fields are cleared is said in one step with the end of their clearing, also by the second of two that cleared them.
func TestMarkAnonymisedEndsTheClearing(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	for i, want := range []time.Time{noon, noon, noon.Add(2)} {
		if began, err := r.BeginClearing(ctx, s.Ref(), noon.Add(time.Duration(i))); err != nil || !began {
			t.Fatal(began, err)
		}
		fields := []string{"user_id"}
		if i == 2 {
			fields = []string{"level"}
		}
		if err := r.MarkAnonymised(ctx, s.Ref(), fields, noon.Add(time.Duration(i))); err != nil {
			t.Fatal(err)
		}
		record, err := r.ErasureRecord(ctx, s.Ref())
		now, shardErr := r.Shard(ctx, s.Ref())
		if err != nil || shardErr != nil || !record.ClearingAt.IsZero() || !now.AnonymisedAt.Equal(want) {
			t.Errorf("the record is %+v (%v), the entry %+v (%v)", record, err, now, shardErr)
		}
	}
}

// What is pending of an erasure that was forgotten meanwhile holds up neither other erasures nor the clearing of fields, unless it
// counted rows.
func TestAbandon(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	ref := schemas.ShardRef{Topic: "app", Month: november, ID: 4}
	there := ledger.Erasure{Topic: "app", ID: "there", State: ledger.Erased}
	if _, err := r.Enter(ctx, there); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pending ledger.Pending
		want    bool
	}{{ledger.Pending{Erasure: "gone"}, true}, {ledger.Pending{Erasure: there.ID}, false}, {ledger.Pending{Erasure: "gone", Rows: 1}, false}} {
		if _, err := r.AmendErasureRecord(ctx, ref, func(t *ledger.ErasureRecord) bool {
			t.Pending = &c.pending
			return true
		}); err != nil && !errors.Is(err, ErrConflict) {
			t.Fatal(err)
		}
		abandoned, err := r.Abandon(ctx, ref, c.pending.Erasure)
		if err != nil || abandoned != c.want {
			t.Errorf("%+v: %t, %v", c.pending, abandoned, err)
		}
		if began, err := r.BeginClearing(ctx, ref, time.Now()); err != nil || began != c.want {
			t.Errorf("%+v: cleared: %t, %v", c.pending, began, err)
		}
	}
}
