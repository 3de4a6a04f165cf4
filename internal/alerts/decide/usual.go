package decide

import (
	"math"
	"slices"
)

// Usual says which values are outside of a range that the ones before them give.
type Usual struct {
	// Deviations is how many deviations from the median a value may be.
	Deviations float64
	// Least is the smallest distance from the median that counts.
	Least float64
}

const (
	// leastBefore is how many values before one tell what is usual: of two, neither does.
	leastBefore = 3
	// ofNormal makes the median of distances the standard deviation of what is spread normally.
	ofNormal = 1.4826
	// leastDeviation of the median is how small a deviation counts. Else it is 0 of what was the same each day, and any other value is
	// infinitely far away.
	leastDeviation = 0.05
)

// Unusual reports whether a value is outside of what those before it make usual. before is the newest first. Only values from the
// first on that is not 0 count: what was not there yet has no range. Of fewer than three nothing is unusual.
func (u Usual) Unusual(value float64, before []float64) bool {
	n := len(before)
	for n > 0 && before[n-1] == 0 {
		n--
	}
	if n < leastBefore {
		return false
	}
	middle := median(before[:n])
	distances := make([]float64, n)
	for i, v := range before[:n] {
		distances[i] = math.Abs(v - middle)
	}
	deviation := max(ofNormal*median(distances), leastDeviation*math.Abs(middle))
	far := math.Abs(value - middle)
	return far > u.Deviations*deviation && far >= u.Least
}

// median of values, of which there are some.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}
