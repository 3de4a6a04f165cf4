package series

import (
	"fmt"
	"testing"
	"time"
)

// What counters grew by over the border of two shards is the same whether a filter tells the shards
// or not.
func TestGrowthOverShards(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, border int // minutes since the month began
		shard          uint64
	}{
		"of two months":  {-1, 0, 1},
		"of one month":   {59, 60, 2},
		"long before it": {31, 60, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
			r := newRig(t)
			p := func(metric, host string, shard uint64, minute int, value float64) point {
				p := point{metric: metric, kind: "cumulative", labels: map[string]string{"host": host}, at: start.Add(time.Duration(minute) * time.Minute), value: value, shard: shard}
				if metric == "sizes" {
					n := uint64(value)
					p.value, p.dist, p.buckets = 0, &Distribution{Count: n, Sum: Number(value), Min: 1, Max: 1}, fmt.Sprintf(`{"bounds":[10],"counts":[%d,0]}`, n)
				}
				return p
			}
			for _, metric := range []string{"requests", "sizes"} {
				r.insert(p(metric, "a", 1, c.before, 10), p(metric, "a", c.shard, c.border+1, 15), p(metric, "a", c.shard, c.border+2, 18))
				// Its only point lies before the range: the read has no such series.
				r.insert(point{metric: metric, labels: map[string]string{"host": "gone"}, kind: "gauge", at: start.Add(time.Duration(c.before) * time.Minute), value: 1, shard: 3})
			}
			// What a is before the range does not refuse what it is in it.
			gauge := p("requests", "a", 4, c.before-1, 9)
			gauge.kind = "gauge"
			r.insert(gauge)
			r.Round()
			for _, metric := range []string{"requests", "sizes"} {
				for align, want := range map[Aligner]string{Delta: "{host=a}1 %s 8", Rate: "{host=a}1/s %s 0.00222222222222"} {
					from := start.Add(time.Duration(c.border) * time.Minute)
					req := Request{Metric: metric, From: from, To: from.Add(time.Hour), Align: align, Period: time.Hour}
					want = fmt.Sprintf(want, req.To.Format("15:04"))
					if metric == "requests" { // whose points have no unit
						want = map[Aligner]string{Delta: "{host=a} " + req.To.Format("15:04") + " 8", Rate: "{host=a}/s " + req.To.Format("15:04") + " 0.00222222222222"}[align]
					}
					for _, where := range []string{"", "attributes.host = 'a'", "attributes.host = 'a'"} { // the second one asks the list early
						req.Where = where
						if a := r.align(req); a.text() != want || a.Series != 1 {
							t.Errorf("%s of %s where %q: %s of %d series, want %s", align, metric, where, a.text(), a.Series, want)
						}
					}
				}
			}
		})
	}
}
