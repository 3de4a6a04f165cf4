package query

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// histogramSettings bound a tally: it may scan a whole month.
var histogramSettings = func() map[string]string {
	s := maps.Clone(readSettings)
	s["max_execution_time"] = "300"
	s["max_rows_to_group_by"] = strconv.Itoa(histogramGroups)
	return s
}()

// buckets lays the cells out in time: from and to, where they are given, are the
// first and the last bucket; else the first and the last that has an event.
func buckets(cells map[cell]uint64, step, from, to int64, by bool) []Bucket {
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for c := range cells {
		lo, hi = min(lo, c.bucket), max(hi, c.bucket)
	}
	if len(cells) == 0 && (from == 1 || to == math.MaxInt64) {
		return nil // neither events nor a range
	}
	shift := sinceMonday(step)
	if from > 1 {
		lo = (from + shift) / step
	}
	if to < math.MaxInt64 {
		hi = (to + shift) / step
	}
	top := frequent(cells)
	out := make([]Bucket, 0, hi-lo+1)
	for n := lo; n <= hi; n++ {
		b := Bucket{At: time.Unix(0, n*step-shift).UTC()}
		if by {
			b.By = map[string]uint64{}
		}
		out = append(out, b)
	}
	for c, n := range cells {
		b := &out[c.bucket-lo]
		b.Count += n
		if by {
			if !slices.Contains(top, c.value) {
				c.value = OtherValues
			}
			b.By[c.value] += n
		}
	}
	return out
}

// sinceMonday is what 1970 began after a Monday, for steps of whole weeks, which begin on
// one; others begin with 1970.
func sinceMonday(step int64) int64 {
	const day = int64(24 * time.Hour)
	if step > 0 && step%(7*day) == 0 {
		return 3 * day // it was a Thursday
	}
	return 0
}

// frequent are the values with the most events.
func frequent(cells map[cell]uint64) []string {
	total := map[string]uint64{}
	for c, n := range cells {
		total[c.value] += n
	}
	values := slices.SortedFunc(maps.Keys(total), func(a, b string) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(a, b))
	})
	return values[:min(len(values), MaxHistogramValues)]
}

// stepName is a step as people write it: 1m, not 1m0s.
func stepName(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
