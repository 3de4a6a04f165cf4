package series

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas/sql"
)

// A list of series that was dropped since a fill was decided begins again: a fill above what
// is gone would leave out the series below for good.
func TestStaleList(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	first := point{metric: "cpu", labels: map[string]string{"host": "a"}, at: at, value: 1}
	r.insert(first)
	r.Round()
	r.insert(point{metric: "cpu", labels: map[string]string{"host": "b"}, at: at, value: 2})
	d, err := derived.Of(r.DB).State(t.Context(), &r.Topic)
	if err != nil {
		t.Fatal(err)
	}
	was := d.Shards[first.ref()]
	if was.Series == 0 || was.Stored.Head <= was.Series {
		t.Fatalf("%+v", was)
	}
	if err := derived.Of(r.DB).Drop(t.Context(), first.ref(), r.Reg.DerivedDropper("cpu")); err != nil { // as an erasure does
		t.Fatal(err)
	}
	if err := derived.Of(r.DB).FillSeries(t.Context(), &r.Topic, first.ref(), was.Series, was.Series, was.Stored.Head); !errors.Is(err, tables.ErrHeadMoved) {
		t.Errorf("a fill above what was dropped: %v", err)
	}
	r.Round()
	list, _, err := r.read.List(t.Context(), ListRequest{Topic: "cpu"})
	if err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A table of the list that was lost changes no answer, and is made and filled again.
func TestLostList(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := time.Date(2026, 2, 1, 0, 0, 30, 0, time.UTC)
	for i, host := range []string{"a", "b"} {
		r.insert(point{metric: "cpu", labels: map[string]string{"host": host}, at: at, value: float64(i)})
	}
	r.Round()
	is := func(when string) {
		t.Helper()
		for _, align := range []Aligner{Mean, Delta} {
			for _, reduce := range []Aligner{None, Count} {
				req := Request{Metric: "cpu", From: at.Add(-time.Minute), To: at.Add(time.Minute), Align: align, Period: time.Minute, Reduce: reduce, Where: "attributes.host = 'b'"}
				if a := r.align(req); a.Series != 1 {
					t.Errorf("%s: align %s has %d series, want 1", when, align, a.Series)
				}
			}
		}
		list, _, err := r.read.List(t.Context(), ListRequest{Topic: "cpu"})
		if err != nil || len(list) != 2 {
			t.Errorf("%s: %+v, %v", when, list, err)
		}
	}
	is("listed")
	r.Exec("DROP TABLE " + sql.QuotedTable(r.DB.Database, "cpu.series") + " SYNC")
	is("lost")
	r.Round()
	is("filled again")
	if parts, err := r.DB.ListParts(t.Context(), "cpu"); err != nil || len(parts) == 0 {
		t.Errorf("the list has %d parts, %v", len(parts), err)
	}
}

// Delta and rate read from before the range.
func TestReadsBegin(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	s := &selection{from: at}
	for align, want := range map[Aligner]time.Time{Mean: at, Delta: at.Add(-Lookback), Rate: at.Add(-Lookback)} {
		if got := s.begins(&Request{Align: align, Period: time.Minute}); !got.Equal(want) {
			t.Errorf("%s begins at %s, want %s", align, got, want)
		}
	}
	if got := s.begins(&Request{Align: Rate, Period: 24 * time.Hour}); !got.Equal(at.Add(-24 * time.Hour)) {
		t.Errorf("a long period begins at %s", got)
	}
}
