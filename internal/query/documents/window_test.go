package documents

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas/document"
)

func TestWindows(t *testing.T) {
	before := &Key{Created: 10_000, ID: "d"}
	for _, c := range []struct {
		name string
		g    Range
		n    int
		d    density
		want []int64
	}{
		{"nothing is known", Range{From: 5, To: 20_000}, 10, density{}, []int64{5}},
		{"from a document on", Range{From: 0, To: 20_000, Before: before}, 10, density{newest: 90_000, each: 10}, []int64{9800, 8400, 0}},
		{"from the range's end", Range{From: 0, To: 9000, Before: before}, 10, density{each: 10}, []int64{8800, 7400, 0}},
		{"from the newest", Range{From: 0, To: math.MaxInt64}, 10, density{newest: 90_000, each: 10}, []int64{89_800, 88_400, 77_200, 0}},
		{"a short range", Range{From: 9900, To: 20_000, Before: before}, 10, density{each: 10}, []int64{9900}},
		{"no range", Range{From: math.MinInt64, To: math.MaxInt64, Before: before}, 10, density{each: 10}, []int64{9800, 8400, -2800, math.MinInt64}},
		{"longer than all time", Range{From: math.MinInt64, To: math.MaxInt64, Before: before}, 10, density{each: 1e18}, []int64{math.MinInt64}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := windows(&c.g, c.n, c.d); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Whatever is thought of how dense documents are, a page by windows is the page.
func TestPageByWindows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now().UnixNano()
	seq := uint64(0)
	for i := range 120 {
		// Documents from nanoseconds to years apart, some with two versions, some removed, some of one time.
		rec := document.Record{ID: fmt.Sprint("d-", i), Path: "p", Op: "created", Version: 1, Changed: now, Created: now - int64(math.Pow(2, float64(i/2)/1.1)), Body: []byte("{}")}
		ops := [][]string{{"created"}, {"created", "updated"}, {"created", "removed"}}[i%3]
		for v, op := range ops {
			seq++
			rec.Op, rec.Version = op, uint64(v+1)
			r.store(&rec, seq)
		}
	}
	ctx, topic := t.Context(), &r.Topic
	all := Range{Path: "p", From: math.MinInt64, To: math.MaxInt64}
	want, err := r.within(ctx, topic, &all, 1000, false)
	if err != nil || len(want) != 80 {
		t.Fatalf("%d documents, %v", len(want), err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		g, n := all, 1+random.IntN(90)
		from := 0
		if i%2 == 0 {
			last := keyOf(want[random.IntN(len(want))])
			g.Before = &last
			from = slices.IndexFunc(want, func(rec *document.Record) bool { return keyOf(rec) == last }) + 1
		}
		to := min(len(want), from+n)
		if i%3 == 0 && from < to {
			g.From = want[to-1].Created
		}
		r.dense[place{topic.Name, "p"}] = density{newest: now - int64(math.Pow(2, 60*random.Float64())), each: math.Pow(2, 60*random.Float64())}
		got, err := r.page(ctx, topic, &g, n, i%4 == 0)
		if err != nil {
			t.Fatal(err)
		}
		expected := want[from:to]
		if g.From > math.MinInt64 { // more of the last one's time may follow
			for to < len(want) && want[to].Created == g.From && to < from+n {
				to++
			}
			expected = want[from:to]
		}
		if !slices.EqualFunc(got, expected, func(a, b *document.Record) bool { return keyOf(a) == keyOf(b) && a.Version == b.Version }) {
			t.Errorf("%d of %d documents after %d, windows %v", len(got), len(expected), from, windows(&g, n, r.dense[place{topic.Name, "p"}]))
		}
	}
}
