package query

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
)

// histogramSettings bound a histogram: it may scan a whole month.
var histogramSettings = func() map[string]string {
	s := maps.Clone(readSettings)
	s["max_execution_time"] = "300"
	s["max_rows_to_group_by"] = strconv.Itoa(histogramGroups)
	return s
}()

// buckets lays the cells out in time: from and to, where they are given, are the
// first and the last bucket; else the first and the last that has an event.
func buckets(cells map[cell]uint64, step Step, from, to int64, by bool) []Bucket {
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for c := range cells {
		lo, hi = min(lo, c.bucket), max(hi, c.bucket)
	}
	if len(cells) == 0 && (from == 1 || to == math.MaxInt64) {
		return nil // neither events nor a range
	}
	if from > 1 {
		lo = step.number(from)
	}
	if to < math.MaxInt64 {
		hi = step.number(to)
	}
	top := frequent(cells)
	out := make([]Bucket, 0, hi-lo+1)
	for n := lo; n <= hi; n++ {
		b := Bucket{At: step.begins(n)}
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
	// A zone that changed sides of the date line has a day less.
	return slices.CompactFunc(out, func(a, b Bucket) bool { return a.At.Equal(b.At) && a.Count == 0 })
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
