package schemas

import (
	"fmt"
	"time"
)

// Month is a calendar month in UTC as YYYYMM: 202611 is November 2026. It is
// the value of the month column and orders like time.
type Month uint32

// MonthOf is the month of a time given in unix nanoseconds.
func MonthOf(tsNs int64) Month {
	y, m, _ := time.Unix(0, tsNs).UTC().Date()
	return Month(y*100 + int(m))
}

// ParseMonth reads YYYY-MM, months 01 to 12, years 1970 to 2261.
func ParseMonth(s string) (Month, error) {
	bad := len(s) != 7 || s[4] != '-'
	for i := 0; !bad && i < 7; i++ {
		bad = i != 4 && (s[i] < '0' || s[i] > '9')
	}
	if bad {
		return 0, fmt.Errorf("%w: %q is not YYYY-MM", ErrMonth, s)
	}
	y := int(s[0]-'0')*1000 + int(s[1]-'0')*100 + int(s[2]-'0')*10 + int(s[3]-'0')
	m := int(s[5]-'0')*10 + int(s[6]-'0')
	if m < 1 || m > 12 {
		return 0, fmt.Errorf("%w: %q has month %02d, it must be 01 to 12", ErrMonth, s, m)
	}
	if y < 1970 || y > 2261 {
		return 0, fmt.Errorf("%w: %q has year %d, it must be 1970 to 2261", ErrMonth, s, y)
	}
	return Month(y*100 + m), nil
}

// String is YYYY-MM.
func (m Month) String() string { return fmt.Sprintf("%04d-%02d", m/100, m%100) }

// Start is the month's first instant, in unix nanoseconds.
func (m Month) Start() int64 {
	return time.Date(int(m/100), time.Month(m%100), 1, 0, 0, 0, 0, time.UTC).UnixNano()
}

// End is the first instant after the month, in unix nanoseconds.
func (m Month) End() int64 { return m.Next().Start() }

// Next is the month after m.
func (m Month) Next() Month {
	if m%100 == 12 {
		return (m/100+1)*100 + 1
	}
	return m + 1
}

// Contains says whether a time in unix nanoseconds lies in the month.
func (m Month) Contains(tsNs int64) bool { return tsNs >= m.Start() && tsNs < m.End() }
