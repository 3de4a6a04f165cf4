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
