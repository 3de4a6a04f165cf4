package query

import (
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// ParseEnd reads the time at which a range ends, as ParseTime does, and "now" as the end of its
// millisecond (see schemas.Until).
func ParseEnd(s string, now time.Time) (time.Time, error) {
	if s == "now" {
		return schemas.Until(now), nil
	}
	return ParseTime(s, now)
}

// ParseTime reads a point in time: RFC 3339, a date (midnight UTC), "now", or a
// distance back from now such as -15m, -1h30m or -7d. Empty is the zero time.
func ParseTime(s string, now time.Time) (time.Time, error) {
	switch {
	case s == "":
		return time.Time{}, nil
	case s == "now":
		return now.UTC(), nil
	case strings.HasPrefix(s, "-"):
		if back, ok := schemas.ParseSpan(s[1:]); ok {
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
