package ledger

import (
	"math"
	"testing"
	"time"
)

func TestLastGone(t *testing.T) {
	t.Parallel()
	record := ErasureRecord{Gone: []Cut{{Pos: 4, Rows: 2}, {Pos: 9, Rows: 3}}, Pending: &Pending{Cuts: []Cut{{Pos: 6, Rows: 1}}}}
	for name, c := range map[string]struct{ pos, want uint64 }{
		"before all":            {3, 0},
		"at one":                {4, 4},
		"after one":             {5, 4},
		"after a pending one":   {8, 6},
		"at the last":           {9, 9},
		"far beyond the last":   {20, 9},
		"at a pending one":      {6, 6},
		"at no position (zero)": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := record.LastGone(c.pos); got != c.want {
				t.Errorf("up to %d: %d, want %d", c.pos, got, c.want)
			}
		})
	}
}

// While an erasure is pending its rows may be there or gone.
func TestExplains(t *testing.T) {
	t.Parallel()
	record := ErasureRecord{Gone: []Cut{{Pos: 4, Rows: 2}}, Pending: &Pending{Cuts: []Cut{{Pos: 6, Rows: 3}}}}
	for name, c := range map[string]struct {
		pos, brought, rows uint64
		want               bool
	}{
		"all that was booked":        {5, 10, 8, true},
		"less than that":             {5, 10, 9, false},
		"more than that":             {5, 10, 7, false},
		"before the pending is gone": {6, 10, 8, true},
		"while it goes":              {6, 10, 7, true},
		"after it is gone":           {6, 10, 5, true},
		"more than both":             {6, 10, 4, false},
		"more rows than frames had":  {6, 10, 11, false},
		"before any":                 {3, 10, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := record.Explains(c.pos, c.brought, c.rows); got != c.want {
				t.Errorf("%d of %d rows up to %d: %t", c.rows, c.brought, c.pos, got)
			}
		})
	}
}

func TestDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record ErasureRecord
		want   bool
	}{
		"nothing":                      {ErasureRecord{}, false},
		"rows":                         {ErasureRecord{Receipts: map[string]Receipt{"e-1": {Rows: 3}}}, false},
		"the partition":                {ErasureRecord{Receipts: map[string]Receipt{"e-1": {Rows: 3}, "e-2": {Dropped: true}}}, true},
		"the partition, forgotten":     {ErasureRecord{Forgotten: &Receipt{Dropped: true}}, true},
		"the partition, one under way": {ErasureRecord{Receipts: map[string]Receipt{"e-2": {Dropped: true}}, Pending: &Pending{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.record.Dropped(); got != c.want {
				t.Errorf("dropped: %t", got)
			}
		})
	}
}

// Each erasure's rows are counted up to a position, and later those above it. What an older version wrote counted all.
func TestCountedUpTo(t *testing.T) {
	t.Parallel()
	record := ErasureRecord{Receipts: map[string]Receipt{"older": {Rows: 3}}}
	for _, c := range []struct {
		id         string
		upTo, want uint64
	}{
		{"e-1", 5, 5},
		{"e-1", 9, 9},
		{"e-1", 7, 9}, // ClickHouse went back
		{"e-2", 0, math.MaxUint64},
		{"older", 4, math.MaxUint64},
		{"e-2", 4, math.MaxUint64},
	} {
		record.Pending = &Pending{Erasure: c.id, UpTo: c.upTo, Cuts: []Cut{{Pos: 1, Rows: 1}}}
		before := record
		record = record.Booked()
		record.Receipts[c.id] = Receipt{Rows: 1}
		if got := record.CountedUpTo(c.id); got != c.want || record.Pending != nil || before.Pending == nil || len(record.Gone) != 1 {
			t.Errorf("%s, counted up to %d: %d, want %d, of %+v", c.id, c.upTo, got, c.want, record)
		}
	}
	if record.Join([]string{"e-1"}); len(record.Counted) != 0 {
		t.Errorf("it was forgotten: %+v", record.Counted)
	}
}

func TestClearing(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		began time.Time
		want  bool
	}{
		"never":            {time.Time{}, false},
		"just now":         {noon, true},
		"a moment to go":   {noon.Add(time.Second - ClearingLapse), true},
		"the mark lapsed":  {noon.Add(-ClearingLapse), false},
		"a clock is ahead": {noon.Add(time.Minute), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (&ErasureRecord{ClearingAt: c.began}).Clearing(noon); got != c.want {
				t.Errorf("clearing: %t", got)
			}
		})
	}
}

// What an erasure noted of a shard whose rows differed from their seal stays known when the
// erasure is forgotten, and when another one is after it.
func TestForgottenKeepsUnsealed(t *testing.T) {
	t.Parallel()
	record := &ErasureRecord{Receipts: map[string]Receipt{"e-1": {Rows: 3, Seal: 4, Unsealed: "d"}, "e-2": {Rows: 1, Seal: 4}}}
	for _, id := range []string{"e-1", "e-2"} {
		if !record.Join([]string{id}) {
			t.Fatal("no receipt of", id)
		}
		if f := record.Forgotten; f.Seal != 4 || f.Unsealed != "d" {
			t.Errorf("after %s: %+v", id, f)
		}
	}
	if record.Forgotten.Rows != 4 || len(record.Receipts) != 0 {
		t.Errorf("%+v", record)
	}
	if record.Join([]string{"e-1"}) {
		t.Error("a receipt that went was joined")
	}
}
