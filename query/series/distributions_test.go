package series

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Percentiles, growth and what cumulative distributions add up to, counted by hand.
func TestDistributions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dist := func(metric, kind, clock, buckets string, count uint64, sum, least, greatest, m2 Number) point {
		return point{metric: metric, kind: kind, at: at(t, clock), buckets: buckets, dist: &Distribution{Count: count, Sum: sum, Min: least, Max: greatest, M2: m2}}
	}
	// of the values 1 2 … 20 and 21 … 30
	r.insert(dist("delta", "delta", "12:00:10", `{"bounds":[10,20,30],"counts":[10,10,0,0]}`, 20, 210, 1, 20, 665))
	r.insert(dist("delta", "delta", "12:00:50", `{"bounds":[10,20,30],"counts":[0,0,10,0]}`, 10, 255, 21, 30, 82.5))
	// of 5; then 12, 14, 16, 18 as well; then from the start 15, 15
	r.insert(dist("total", "cumulative", "12:00:30", `{"bounds":[10,20],"counts":[1,0,0]}`, 1, 5, 5, 5, 0))
	r.insert(dist("total", "cumulative", "12:01:30", `{"bounds":[10,20],"counts":[1,4,0]}`, 5, 65, 5, 18, 100))
	r.insert(dist("total", "cumulative", "12:02:30", `{"bounds":[10,20],"counts":[0,2,0]}`, 2, 30, 15, 15, 0))
	// the highest bucket is new; then the scale is coarser
	r.insert(dist("scaled", "cumulative", "12:00:30", `{"bounds":[0,4,8],"counts":[1,0,2,0]}`, 3, 10, 0, 5, 0))
	r.insert(dist("scaled", "cumulative", "12:01:30", `{"bounds":[0,4,8,16],"counts":[1,0,3,1,0]}`, 5, 28, 0, 12, 0))
	r.insert(dist("scaled", "cumulative", "12:02:30", `{"bounds":[0,16],"counts":[1,9,0]}`, 10, 48, 0, 12, 0))
	// without least and greatest, and without buckets
	r.insert(dist("open", "delta", "12:00:30", `{"bounds":[10,20],"counts":[0,4,1]}`, 5, 80, 0, 0, 0))
	r.insert(dist("closed", "delta", "12:00:30", "", 4, 20, 2, 8, 0))
	// beside values
	r.insert(dist("mixed", "delta", "12:00:30", `{"bounds":[10],"counts":[2,0]}`, 2, 10, 4, 6, 0))
	r.insert(point{metric: "mixed", kind: "delta", at: at(t, "12:00:31"), value: 8})
	// of two series, whose points are those of delta, and of mixed
	for i, p := range []point{dist("parts", "delta", "12:00:10", `{"bounds":[10,20,30],"counts":[10,10,0,0]}`, 20, 210, 1, 20, 665), dist("parts", "delta", "12:00:50", `{"bounds":[10,20,30],"counts":[0,0,10,0]}`, 10, 255, 21, 30, 82.5),
		dist("blend", "delta", "12:00:30", `{"bounds":[10],"counts":[2,0]}`, 2, 10, 4, 6, 0), {metric: "blend", kind: "delta", at: at(t, "12:00:31"), value: 8}} {
		p.labels = map[string]string{"host": fmt.Sprint("h", i%2)}
		r.insert(p)
	}
	r.insert(dist("empty", "cumulative", "12:00:30", `{"bounds":[],"counts":[0]}`, 0, 0, 0, 0, 0))
	r.insert(dist("empty", "cumulative", "12:01:30", `{"bounds":[],"counts":[0]}`, 0, 0, 0, 0, 0))
	check := func(t *testing.T) {
		for _, c := range []struct {
			metric, align, want string
		}{
			{"delta", "p50", "12:01 15"}, {"delta", "p95", "12:01 28.5"}, {"delta", "p05", "12:01 2.35"}, {"delta", "p99", "12:01 29.7"},
			{"delta", "delta", "12:01 30"}, {"delta", "rate", "12:01 0.5"}, {"delta", "mean", "12:01 15.5"}, {"delta", "max", "12:01 30"},
			{"total", "delta", "12:02 4; 12:03 2"}, {"total", "count", "12:02 4; 12:03 2"}, {"total", "mean", "12:02 15; 12:03 15"}, {"total", "sum", "12:02 60; 12:03 30"},
			{"total", "stddev", "12:02 2.2360679775; 12:03 0"}, {"total", "p50", "12:02 14; 12:03 15"}, {"total", "min", "12:02 10; 12:03 15"}, {"total", "max", "12:02 18; 12:03 15"},
			{"total", "summary", "12:02 (4, 15, 20, 10, 18); 12:03 (2, 15, 0, 15, 15)"},
			{"scaled", "delta", "12:02 2; 12:03 5"}, {"scaled", "p50", "12:02 8; 12:03 5.33333333333"}, {"scaled", "mean", "12:02 9; 12:03 4"},
			{"open", "p50", "12:01 16.25"}, {"open", "p99", "12:01 20"}, {"closed", "p50", "12:01 5"}, {"closed", "rate", "12:01 0.0666666666667"},
			{"mixed", "p50", "12:01 8"}, {"mixed", "mean", "12:01 6"},
			{"empty", "p50", ""}, {"empty", "mean", ""}, {"empty", "delta", "12:02 0"},
		} {
			a := r.align(Request{Metric: c.metric, From: at(t, "12:00:00"), To: at(t, "12:03:00"), Align: Aligner(c.align), Period: time.Minute})
			got := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(a.text(), "{}"), "1/s"), "1"), " 12:", "; 12:")
			if got = strings.TrimPrefix(got, "; "); got != c.want {
				t.Errorf("%s of %s: %s, want %s", c.align, c.metric, got, c.want)
			}
		}
		for _, c := range []struct {
			metric string
			level  Aligner
			want   string
		}{{"parts", P50, "{} 12:01 15"}, {"parts", P95, "{} 12:01 28.5"}, {"parts", P99, "{} 12:01 29.7"}, {"blend", P50, "{} 12:01 8"}, {"total", P50, "{} 12:02 14 12:03 15"}} {
			a := r.align(Request{Metric: c.metric, From: at(t, "12:00:00"), To: at(t, "12:03:00"), Align: Summary, Period: time.Minute, Reduce: c.level})
			if got := a.text(); got != c.want {
				t.Errorf("%s of all points of %s: %s, want %s", c.level, c.metric, got, c.want)
			}
		}
		a := r.align(Request{Metric: "total", From: at(t, "12:00:00"), To: at(t, "12:03:00"), Align: Rate, Period: time.Minute, Reduce: Sum})
		if got, want := a.text(), fmt.Sprintf("{}1/s 12:02 %.12g 12:03 %.12g", 4/60., 2/60.); got != want {
			t.Errorf("reduced: %s, want %s", got, want)
		}
	}
	t.Run("from rows", check)
	r.Round()
	t.Run("derived", check)
}
