package schemas

import (
	"fmt"
	"math"
	"time"
)

// Between is the times of a range as its first and its last nanosecond: from is within the
// range, and to is not. The zero time is open.
func Between(from, to time.Time) (first, last int64, err error) {
	first, last = math.MinInt64, math.MaxInt64
	if !from.IsZero() {
		if first, err = UnixNs(from); err != nil {
			return 0, 0, fmt.Errorf("from: %w", err)
		}
	}
	if !to.IsZero() {
		if last, err = UnixNs(to); err != nil {
			return 0, 0, fmt.Errorf("to: %w", err)
		}
		last--
	}
	if first > last {
		return 0, 0, fmt.Errorf("from (%s) must lie before to (%s), which is not in the range", from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano))
	}
	return first, last, nil
}

// Until is the end of a range that ends now. It is the end of the millisecond, so that the
// range has what was accepted at this moment.
func Until(now time.Time) time.Time {
	return now.UTC().Truncate(time.Millisecond).Add(time.Millisecond)
}

// between reports that a number is out of its bounds.
func between[N int | time.Duration](what string, n, least, most N) error {
	if n < least || n > most {
		return fmt.Errorf("%s is %v, it must be %v to %v", what, n, least, most)
	}
	return nil
}
