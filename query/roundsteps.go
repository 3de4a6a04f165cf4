package query

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// roundLengths and roundMonths are steps that people read off an axis.
var (
	roundLengths = func() (all []time.Duration) {
		for unit := time.Millisecond; unit < time.Second; unit *= 10 {
			all = append(all, unit, 2*unit, 5*unit)
		}
		for _, unit := range []time.Duration{time.Second, time.Minute} {
			for _, n := range []time.Duration{1, 2, 5, 10, 15, 30} {
				all = append(all, n*unit)
			}
		}
		for _, n := range []time.Duration{1, 2, 3, 6, 12} {
			all = append(all, n*time.Hour)
		}
		return append(all, day, 2*day, 7*day)
	}()
	roundMonths = []int{1, 2, 3, 6, 12, 24, 60, 120, 240, 600, maxMonths}
)

// StepOf returns the shortest round step by which a range has n buckets at most. The buckets begin at round times, as those of each
// step do, so that the first and the last may be cut by the range.
func StepOf(n int, from, to time.Time, zone string) (Step, error) {
	first, last, err := schemas.Between(from, to)
	switch {
	case err != nil:
		return Step{}, err
	case from.IsZero() || to.IsZero():
		return Step{}, fmt.Errorf("%w: a number of buckets needs a range of time: give from", schemas.ErrRequest)
	case n < 2 || n > MaxBuckets:
		return Step{}, fmt.Errorf("%w: %d buckets, it must be 2 to %d", schemas.ErrRequest, n, MaxBuckets)
	}
	s, err := ParseStep("1s", zone)
	if err != nil {
		return s, err
	}
	fits := func() bool { return s.number(last)-s.number(first) < int64(n) }
	for _, s.Length = range roundLengths {
		if fits() {
			return s, nil
		}
	}
	s.Length = 0
	for _, s.Months = range roundMonths {
		if fits() {
			return s, nil
		}
	}
	return s, nil // 1677 to 2262 in two centuries at a time
}
