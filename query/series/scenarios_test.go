package series

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/schemas/sql"
)

// The examples of alignment, each point stored three times and one four minutes late, with
// nothing derived, some of it, all of it, and after what was derived is lost.
func TestAlign(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	example := []struct {
		at    string
		value float64
	}{{"12:04:24", 123}, {"12:04:54", 98}, {"12:05:24", 121}, {"12:05:54", 103}, {"12:06:24", 105}, {"12:06:54", 106}}
	for range 3 {
		for i, e := range example {
			if i != 3 {
				r.insert(point{metric: "cpu", unit: "%", labels: map[string]string{"host": "a", "region": "eu"}, at: at(t, e.at), value: e.value, shard: uint64(i % 2)})
			}
		}
	}
	r.Round()
	for range 3 {
		r.insert(point{metric: "cpu", unit: "%", labels: map[string]string{"region": "eu", "host": "a"}, at: at(t, "12:05:54"), value: 103})
	}
	for range 3 {
		r.insert(point{metric: "edge", at: at(t, "12:05:00"), value: 1}, point{metric: "edge", at: at(t, "12:05:00.001"), value: 2},
			point{metric: "pair", labels: map[string]string{"s": "A", "project": "p"}, at: at(t, "12:04:24"), value: 123}, point{metric: "pair", labels: map[string]string{"s": "A", "project": "p"}, at: at(t, "12:04:54"), value: 98},
			point{metric: "pair", labels: map[string]string{"s": "B", "project": "p"}, at: at(t, "12:04:24"), value: 50, shard: 1})
		for i, v := range []float64{100, 160, 20, 50} {
			start := at(t, "12:00:00")
			if i >= 2 {
				start = at(t, "12:02:00")
			}
			r.insert(point{metric: "requests", unit: "1", kind: "cumulative", at: at(t, "12:01:00").Add(time.Duration(i) * time.Minute), start: start, value: v})
		}
	}
	// A corrected point, of which the last one that was made counts, whichever is stored last.
	r.insert(point{metric: "corrected", at: at(t, "12:00:30"), value: 2, made: 1 << 20})
	r.insert(point{metric: "corrected", at: at(t, "12:00:30"), value: 1, made: 1 << 19, shard: 1})
	r.insert(point{metric: "corrected", at: at(t, "12:00:30"), value: 3, kind: "stale", made: 1 << 18})

	from, to := at(t, "12:00:00"), at(t, "12:10:00")
	ask := func(metric string, period time.Duration, align, reduce Aligner, by ...string) Request {
		return Request{Metric: metric, From: from, To: to, Period: period, Align: align, Reduce: reduce, By: by}
	}
	checks := map[string]struct {
		req  Request
		want string
	}{
		"60 s":            {ask("cpu", time.Minute, Summary, None), "{host=a,region=eu}% 12:05 (2, 110.5, 312.5, 98, 123) 12:06 (2, 112, 162, 103, 121) 12:07 (2, 105.5, 0.5, 105, 106)"},
		"300 s":           {ask("cpu", 5*time.Minute, Summary, None), "{host=a,region=eu}% 12:05 (2, 110.5, 312.5, 98, 123) 12:10 (4, 108.75, 204.75, 103, 121)"},
		"edge":            {ask("edge", time.Minute, Sum, None), "{} 12:05 1 12:06 2"},
		"mean of means":   {ask("pair", time.Minute, Mean, Mean, "project"), "{project=p} 12:05 80.25"},
		"mean of all":     {ask("pair", time.Minute, Summary, Mean, "project"), "{project=p} 12:05 90.3333333333"},
		"sum of all":      {ask("pair", time.Minute, Summary, Sum, "project"), "{project=p} 12:05 271"},
		"least of all":    {ask("pair", time.Minute, Summary, Min, "project"), "{project=p} 12:05 50"},
		"greatest of all": {ask("pair", time.Minute, Summary, Max, "project"), "{project=p} 12:05 123"},
		"count of all":    {ask("pair", time.Minute, Summary, Count, "project"), "{project=p}1 12:05 3"},
		"series":          {ask("pair", time.Minute, Mean, Count, "project"), "{project=p}1 12:05 2"},
		"p50 of all":      {ask("pair", time.Minute, Summary, P50, "project"), "{project=p} 12:05 98"},
		"p95 of means":    {ask("pair", time.Minute, Mean, P95, "project"), "{project=p} 12:05 107.475"},
		"summary of all":  {ask("pair", time.Minute, Summary, Summary), "{} 12:05 (3, 90.3333333333, 2752.66666667, 50, 123)"},
		"delta":           {ask("requests", time.Minute, Delta, None), "{}1 12:02 60 12:03 20 12:04 30"},
		"rate":            {ask("requests", time.Minute, Rate, None), "{}1/s 12:02 1 12:03 0.333333333333 12:04 0.5"},
		"rate of 5 m":     {ask("requests", 5*time.Minute, Rate, Sum), "{}1/s 12:05 0.366666666667"},
		"corrected":       {ask("corrected", time.Minute, Max, None), "{} 12:01 2"},
		"none":            {Request{Metric: "pair", Where: "attributes.s = 'B'", From: from, To: to}, "{project=p,s=B} 12:04 50"},
		"p50":             {ask("cpu", 5*time.Minute, P50, None), "{host=a,region=eu}% 12:05 110.5 12:10 105.5"},
		"final":           {Request{Metric: "cpu", From: from, Period: time.Minute, Align: Count, Final: true, Now: at(t, "12:11:30")}, "{host=a,region=eu}1 12:05 2 12:06 2"},
		"nothing final":   {Request{Metric: "cpu", From: from, Period: time.Minute, Align: Count, Final: true, Now: at(t, "12:04:00")}, ""},
		"delta from 3":    {Request{Metric: "requests", From: at(t, "12:02:00"), To: to, Period: time.Minute, Align: Delta}, "{}1 12:03 20 12:04 30"},
		"no series":       {ask("nothing", time.Minute, Mean, None), ""},
	}
	check := func(t *testing.T) {
		t.Helper()
		for name, c := range checks {
			if got := r.align(c.req).text(); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
			}
		}
	}
	t.Run("some derived", check)
	r.Examine(r.Shards()[0])
	t.Run("one shard examined", check)
	r.Round()
	t.Run("derived", check)
	r.Exec("TRUNCATE TABLE " + sql.QuotedTable(r.DB.Database, "cpu.series"))
	t.Run("the list of series lost", check)
	if err := derived.Of(r.DB).DropAll(t.Context(), &r.Topic, r.Reg.DerivedDropper("cpu")); err != nil {
		t.Fatal(err)
	}
	t.Run("all derived lost", check)
}
