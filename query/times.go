package query

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a point in time: RFC 3339, a date (midnight UTC), "now", or a
// distance back from now such as -15m, -1h30m or -7d. Empty is the zero time.
func ParseTime(s string, now time.Time) (time.Time, error) {
	switch {
	case s == "":
		return time.Time{}, nil
	case s == "now":
		return now.UTC(), nil
	case strings.HasPrefix(s, "-"):
		if back, ok := ParseSpan(s[1:]); ok {
			return now.Add(-back).UTC(), nil
		}
	default:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
			if t, err := time.Parse(layout, s); err == nil {
				return t.UTC(), nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; give RFC 3339 (2026-11-20T15:04:05Z), a date, now, or a distance back (-15m, -2h, -7d)", s)
}

// ParseSpan reads a length of time: what time.ParseDuration reads, and days and
// weeks. As there, 0 needs no unit.
func ParseSpan(s string) (total time.Duration, ok bool) {
	if s == "" || s == "0" {
		return 0, s == "0"
	}
	for s != "" {
		i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if i < 1 {
			return 0, false
		}
		j := i
		for j < len(s) && (s[j] < '0' || s[j] > '9') {
			j++
		}
		n, err := strconv.ParseFloat(s[:i], 64)
		unit, known := spans[s[i:j]]
		if err != nil || !known || n*float64(unit) > float64(1<<62) {
			return 0, false
		}
		total += time.Duration(n * float64(unit))
		s = s[j:]
		if total < 0 {
			return 0, false
		}
	}
	return total, true
}

var spans = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond, "s": time.Second,
	"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
}
