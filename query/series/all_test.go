package series

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// TestAllOfTheKeptList: the list that is kept gives the series that ClickHouse gives, in ranges, of metrics and by filters.
// Rows above the list are of ClickHouse's answer alone.
func TestAllOfTheKeptList(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 60 {
		r.insert(point{
			metric: fmt.Sprint("m", n%3), labels: map[string]string{"host": fmt.Sprint("h", n%7), "odd": "ü \"'"},
			at: month.Add(time.Duration(n) * time.Minute), value: float64(n), shard: uint64(1 + n%2),
		})
	}
	r.Round()
	ask := func(q ListRequest) (kept, asked []Keyed, known bool) {
		t.Helper()
		if err := q.check(); err != nil {
			t.Fatal(err)
		}
		snap, err := r.read.begin(t.Context(), "cpu")
		if err != nil {
			t.Fatal(err)
		}
		s, err := q.selection(snap)
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.read.keptList(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if kept, known = list.keyed(s, 1000); list == nil && known {
			t.Error("series of a list that there is not")
		}
		if asked, err = r.read.askAll(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for _, l := range [][]Keyed{kept, asked} {
			slices.SortFunc(l, func(a, b Keyed) int { return bytes.Compare(a.Key[:], b.Key[:]) })
		}
		return kept, asked, known
	}
	requests := map[string]struct {
		ListRequest
		series int
	}{
		"all":                    {ListRequest{Topic: "cpu"}, 21},
		"a metric":               {ListRequest{Topic: "cpu", Metric: "m1"}, 7},
		"a metric there is not":  {ListRequest{Topic: "cpu", Metric: "m9"}, 0},
		"a label":                {ListRequest{Topic: "cpu", Where: "attributes.host = 'h3'"}, 3},
		"not a label":            {ListRequest{Topic: "cpu", Metric: "m2", Where: "attributes.host != 'h3'"}, 6},
		"a label there is not":   {ListRequest{Topic: "cpu", Where: "attributes.other = 'h3'"}, 0},
		"the first five minutes": {ListRequest{Topic: "cpu", From: month, To: month.Add(5 * time.Minute)}, 5},
		"the last two minutes":   {ListRequest{Topic: "cpu", From: month.Add(58 * time.Minute)}, 2},
		"before the first":       {ListRequest{Topic: "cpu", To: month}, 0},
	}
	for name, c := range requests {
		kept, asked, known := ask(c.ListRequest)
		if !known || len(kept) != c.series || len(kept)+len(asked) > 0 && !reflect.DeepEqual(kept, asked) {
			t.Errorf("%s: known %t, kept %+v; ClickHouse says %+v", name, known, kept, asked)
		}
		all, err := r.read.All(t.Context(), c.ListRequest)
		if err != nil || len(all) != c.series {
			t.Errorf("%s: %d series, %v; want %d", name, len(all), err, c.series)
		}
	}
	r.insert(point{metric: "m0", labels: map[string]string{"host": "new"}, at: month.Add(time.Minute), value: 1, shard: 1})
	if _, asked, known := ask(ListRequest{Topic: "cpu"}); known || len(asked) != 22 {
		t.Errorf("with a row that is not listed: known %t, %d series of 22", known, len(asked))
	}
	if all, err := r.read.All(t.Context(), ListRequest{Topic: "cpu"}); err != nil || len(all) != 22 {
		t.Errorf("with a row that is not listed: %d series of 22, %v", len(all), err)
	}
}

// BenchmarkAll lists the thousand series of a metric, by the list that is kept and by a statement.
func BenchmarkAll(b *testing.B) {
	r := newRig(b)
	points := make([]point, 1000)
	for n := range points {
		points[n] = point{metric: "m", labels: map[string]string{"host": fmt.Sprint("h", n), "region": fmt.Sprint("r", n%8), "job": "node"}, at: month.Add(time.Minute), value: 1}
	}
	r.insert(points...)
	r.Round()
	q := ListRequest{Topic: "cpu", Metric: "m"}
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			if all, err := r.read.All(b.Context(), q); err != nil || len(all) != len(points) {
				b.Fatal(len(all), err)
			}
		}
	})
	b.Run("asked for", func(b *testing.B) {
		for b.Loop() {
			var all []Keyed
			err := r.read.listing(b.Context(), &q, func(s *selection) (err error) {
				all, err = r.read.askAll(b.Context(), s)
				return err
			})
			if err != nil || len(all) != len(points) {
				b.Fatal(len(all), err)
			}
		}
	})
}
