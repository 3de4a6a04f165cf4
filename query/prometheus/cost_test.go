package prometheus

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// The store refuses what is too much before it reads or allocates anything.
func TestExecRefusesCosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, q := range []Query{
		{Expr: "max_over_time(up[10y:1ms])", Start: noon},
		{Expr: "max_over_time(up[1h:1ms])", Start: noon, End: noon.AddDate(10, 0, 0), Step: 24 * time.Hour},
		{Expr: `label_join(vector(1), "a", "` + strings.Repeat("x", 2000) + `", "a", "a")`, Start: noon},
		{Expr: "up" + strings.Repeat(" or up", 1000), Start: noon},
	} {
		q.Topic = "metrics"
		err := r.store.Exec(t.Context(), &q, func(*promql.Result, string) error { return nil })
		if _, ok := err.(*ParseError); !ok { //nolint:errorlint // it is this error itself
			t.Errorf("%.80s: %v", q.Expr, err)
		}
	}
}

// A selector that a query has many times is read once.
func TestSelectorsAreReadOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.insert(sample{labels.FromStrings("__name__", "up", "a", "b"), "", noon.UnixMilli(), 2})
	if got, want := r.exec(instant("up"+strings.Repeat(" + up", 90)+" + (up or up)", noon)), `{a="b"} => 184 @[1769947200000]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	q := &querier{s: r.store, topic: "metrics", from: noon.Add(-time.Hour).UnixMilli(), to: noon.UnixMilli()}
	m := labels.MustNewMatcher(labels.MatchEqual, "__name__", "up")
	hints := &storage.SelectHints{Start: q.from, End: q.to}
	first := q.Select(t.Context(), true, hints, m)
	for range 3 {
		again := q.Select(t.Context(), false, hints, m)
		n := 0
		for again.Next() {
			n++
		}
		if n != 1 || len(q.found) != 1 {
			t.Errorf("%d series, %d reads", n, len(q.found))
		}
	}
	if !first.Next() || first.Next() {
		t.Error("one that was selected before changed")
	}
	_ = q.Select(t.Context(), false, &storage.SelectHints{Start: q.from, End: q.to - 1}, m)
	if len(q.found) != 2 {
		t.Errorf("another range is another read: %d", len(q.found))
	}
}

// A function that would look at the points of a series again and again is refused.
func TestVisits(t *testing.T) {
	t.Parallel()
	l := &line{points: make(points, 100_000)}
	s := &set{list: []*line{l}}
	for name, c := range map[string]struct {
		hints *storage.SelectHints
		fails bool
	}{
		"labels alone":                 {nil, false},
		"an instant of each step":      {&storage.SelectHints{Step: 1}, false},
		"one range":                    {&storage.SelectHints{Range: 1_000_000}, false},
		"a thousandth, at many steps":  {&storage.SelectHints{Range: 1000, Step: 100}, false},
		"half of them, at 5,000 steps": {&storage.SelectHints{Range: 500_000, Step: 100}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.visited(c.hints, 0, 1_000_000); (err != nil) != c.fails {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
