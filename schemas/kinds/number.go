package kinds

import "math"

// staleBits is the NaN that Prometheus ends a series with, and no other NaN.
const staleBits = 0x7ff0000000000002

// Number is a sample's value as the columns keep it: a number and no word, or 0 and the kind of
// points that stands for what is not finite.
func Number(v float64) (float64, string) {
	switch {
	case math.Float64bits(v) == staleBits:
		return 0, PointsStale
	case math.IsNaN(v):
		return 0, PointsNaN
	case math.IsInf(v, 1):
		return 0, PointsInf
	case math.IsInf(v, -1):
		return 0, PointsNegInf
	}
	return v, ""
}
