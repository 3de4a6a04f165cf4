package series

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/schemas/sql"
)

// A read of few series looks at their shards alone, and misses nothing: not what is not listed
// or examined yet, not what came after its snapshot, and not where series are in many shards.
func TestPlaces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := func(host string, shard uint64, minute int, value float64) point {
		return point{metric: "m", labels: map[string]string{"host": host}, at: month.Add(time.Duration(minute) * time.Minute), value: value, shard: shard}
	}
	of := func(host string) (*selection, *found) {
		t.Helper()
		snap, err := r.read.begin(t.Context(), "cpu")
		if err != nil {
			t.Fatal(err)
		}
		s, err := selectSeries(snap, "m", "attributes.host = '"+host+"'", month.Add(-time.Hour), month.Add(3*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		f, err := r.read.find(t.Context(), s, &Request{Topic: "cpu", Metric: "m", Reduce: None})
		if err != nil {
			t.Fatal(err)
		}
		return s, f
	}
	read := func(host, want string) {
		t.Helper()
		if got := r.align(Request{Metric: "m", Where: "attributes.host = '" + host + "'", From: month.Add(-time.Hour), To: month.Add(3 * time.Hour)}).text(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	one, two := p("a", 1, 10, 1), p("a", 2, 70, 2) // in two months
	r.insert(one, two, p("b", 3, 10, 9), p("b", 4, 70, 9))
	if s, _ := of("a"); s.places != nil {
		t.Errorf("%v before anything was examined", s.places)
	}
	r.Round()
	s, f := of("a")
	if len(s.places) != 2 || !s.places[one.ref()] || !s.places[two.ref()] || f.series != 1 || f.all != 2 || len(s.keys) != 1 {
		t.Errorf("places %v, keys %v, %+v", s.places, s.keys, f)
	}
	read("a", "{host=a} 23:10 1 00:10 2")

	// A later copy in another shard: first not examined, then marked in the shard of the first.
	r.insert(p("a", 3, 10, 5))
	if s, _ := of("a"); s.places != nil {
		t.Errorf("%v while rows wait", s.places)
	}
	read("a", "{host=a} 23:10 5 00:10 2")
	r.Round()
	if s, _ := of("a"); len(s.places) != 3 {
		t.Errorf("places %v of three", s.places)
	}
	read("a", "{host=a} 23:10 5 00:10 2")

	// Examined, and not listed: the list is behind.
	unlisted := p("a", 4, 20, 7)
	r.insert(unlisted)
	r.Examine(unlisted.ref())
	if s, f := of("a"); s.places != nil || f.series != 1 {
		t.Errorf("%v while the list is behind, %+v", s.places, f)
	}
	read("a", "{host=a} 23:10 5 23:20 7 00:10 2")
	r.Round()

	// What comes between the snapshot and the points is not in the answer, and not half of it: the
	// copy that would take the place of a point is in no shard that is read.
	s, _ = of("a")
	r.insert(p("a", 1, 130, 8), p("a", 2, 10, 6))
	r.Round()
	a := &Answer{Groups: []Group{}}
	if keys, err := r.read.read(t.Context(), s, &Request{Align: None, Reduce: None}, a); !errors.Is(err, once.ErrMoved) && (err != nil || len(keys) != 1 || len(a.Groups[0].Points) != 3 || *a.Groups[0].Points[0].Value != 5) {
		t.Errorf("%v, %+v", err, a.Groups)
	}
	read("a", "{host=a} 23:10 6 23:20 7 00:10 2 01:10 8")

	// In more shards than are told apart.
	var many []point
	for i := range maxPlaces + 1 {
		many = append(many, p("c", uint64(10+i), i%50, float64(i)))
	}
	r.insert(many...)
	r.Round()
	if s, _ := of("c"); s.places != nil {
		t.Errorf("%d places", len(s.places))
	}
	if got := r.align(Request{Metric: "m", Where: "attributes.host = 'c'", From: month.Add(-time.Hour), To: month.Add(3 * time.Hour), Align: Count, Period: 24 * time.Hour}).text(); got != "{host=c}1 00:00 50" {
		t.Error(got)
	}
}

// With no repeat marked when a read began, one that is marked since is neither missing nor twice.
func TestMarkedSince(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := point{metric: "m", labels: map[string]string{"host": "a"}, at: month.Add(time.Minute), value: 1}
	r.insert(first)
	r.Round()
	snap, err := r.read.snapshot(t.Context(), "cpu")
	if err != nil || snap.Marks != 0 || !snap.Quiet() {
		t.Fatalf("%v, %+v", err, snap)
	}
	again := first
	again.value, again.shard = 2, 1
	r.insert(again)
	r.Round()
	var marks uint64
	if err := r.DB.Conn().QueryRow(t.Context(), fmt.Sprintf("SELECT count() FROM %s WHERE id != %s", sql.QuotedTable(r.DB.Database, "cpu.repeats"), sql.NoID)).Scan(&marks); err != nil || marks != 1 {
		t.Fatalf("%d marks, %v", marks, err)
	}
	s, err := selectSeries(snap, "m", "", month, month.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	a := &Answer{Groups: []Group{}}
	if _, err := r.read.read(t.Context(), s, &Request{Align: None, Reduce: None}, a); err != nil || len(a.Groups) != 1 || len(a.Groups[0].Points) != 1 || *a.Groups[0].Points[0].Value != 1 {
		t.Errorf("%v, %+v", err, a.Groups)
	}
}
