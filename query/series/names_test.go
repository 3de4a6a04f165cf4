package series

import (
	"fmt"
	"testing"
	"time"
)

// A series that comes between what is found and the points is in the answer with its labels, also among
// more than are named by their keys: where rows wait to be examined, points are not cut at the snapshot.
func TestNewSeriesWhileRead(t *testing.T) {
	t.Parallel()
	p := func(host string, minute int) point {
		return point{metric: "m", labels: map[string]string{"host": host}, at: month.Add(time.Duration(minute) * time.Minute), value: 1, shard: 1}
	}
	var many []point
	for i := range fewSeries + 50 {
		many = append(many, p(fmt.Sprint(i), 10))
	}
	for name, c := range map[string]struct {
		listed bool // then the points are those of the snapshot
		want   int
	}{
		"nothing examined": {false, len(many) + 1},
		"all examined":     {true, len(many)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.insert(many...)
			if c.listed {
				r.Round()
			}
			snap, err := r.read.begin(t.Context(), "cpu")
			if err != nil {
				t.Fatal(err)
			}
			s, err := selectSeries(snap, "m", "", month, month.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			req := &Request{Topic: "cpu", Metric: "m", Align: None, Reduce: None}
			f, err := r.read.find(t.Context(), s, req)
			if err != nil {
				t.Fatal(err)
			}
			r.insert(p("new", 20))
			a := &Answer{Groups: []Group{}}
			keys, err := r.read.read(t.Context(), s, req, a)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.read.names(t.Context(), s, req, f.names, keys, a.Groups); err != nil {
				t.Fatalf("%d series found, %d read: %v", f.series, len(keys), err)
			}
			hosts := map[string]bool{}
			for _, g := range a.Groups {
				hosts[g.Labels["host"]] = true
			}
			if len(a.Groups) != c.want || len(hosts) != c.want || hosts["new"] == c.listed {
				t.Errorf("%d groups of %d hosts, expected %d", len(a.Groups), len(hosts), c.want)
			}
		})
	}
}
