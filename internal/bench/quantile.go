package bench

import (
	"math"
	"slices"
	"time"
)

// samples are latencies of one kind, all of them kept: a quantile is then exact,
// and at eight bytes each a million are little.
type samples []time.Duration

// quantile is the smallest sample that at least the share q (0 to 1) of all do
// not exceed; 0 of none. It sorts s.
func (s samples) quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	i := int(math.Ceil(q*float64(len(s)))) - 1
	return s[min(max(i, 0), len(s)-1)]
}

// above is how many samples are d or more.
func (s samples) above(d time.Duration) (n int) {
	for _, v := range s {
		if v >= d {
			n++
		}
	}
	return n
}

// median of floats; NaN of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	m := len(v) / 2
	if len(v)%2 == 1 {
		return v[m]
	}
	return (v[m-1] + v[m]) / 2
}
