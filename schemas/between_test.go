package schemas

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestBetween(t *testing.T) {
	t.Parallel()
	at := func(ns int64) time.Time { return time.Unix(0, ns) }
	for name, c := range map[string]struct {
		from, to    time.Time
		first, last int64
		says        string
	}{
		"open":           {first: math.MinInt64, last: math.MaxInt64},
		"from":           {from: at(5), first: 5, last: math.MaxInt64},
		"to":             {to: at(5), first: math.MinInt64, last: 4},
		"one nanosecond": {from: at(5), to: at(6), first: 5, last: 5},
		"empty":          {from: at(5), to: at(5), says: "must lie before"},
		"turned":         {from: at(6), to: at(5), says: "must lie before"},
		"too far":        {to: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), says: "to: "},
		"too old":        {from: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), says: "from: "},
	} {
		t.Run(name, func(t *testing.T) {
			first, last, err := Between(c.from, c.to)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", name, err)
				}
				return
			}
			if err != nil || first != c.first || last != c.last {
				t.Errorf("%s: %d to %d, %v", name, first, last, err)
			}
		})
	}
	for _, ns := range []int64{1, 999_999, 1_000_000, 1_000_001} {
		if got := Until(at(ns)).UnixNano(); got <= ns || got > ns+1e6 || got%1e6 != 0 {
			t.Errorf("a range to the %dth nanosecond ends at %d", ns, got)
		}
	}
}
