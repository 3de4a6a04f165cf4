package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseTime reads a point in time: RFC 3339, a date (midnight UTC), "now", or a
// distance back from now such as -15m, -1h30m or -7d. Empty is the zero time.
func parseTime(s string, now time.Time) (time.Time, error) {
	switch {
	case s == "":
		return time.Time{}, nil
	case s == "now":
		return now.UTC(), nil
	case strings.HasPrefix(s, "-"):
		if back, ok := parseSpan(s[1:]); ok {
			return now.Add(-back).UTC(), nil
		}
	default:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
			if t, err := time.Parse(layout, s); err == nil {
				return t.UTC(), nil
			}
		}
	}
	return time.Time{}, usageError{fmt.Errorf("%q is no time; give RFC 3339 (2026-11-20T15:04:05Z), a date, now, or a distance back (-15m, -2h, -7d)", s)}
}

// parseSpan reads a length of time: what time.ParseDuration reads, and days and
// weeks. As there, 0 needs no unit.
func parseSpan(s string) (total time.Duration, ok bool) {
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

// parseSize reads bytes: 1073741824, 64MiB, 2GB.
func parseSize(s string) (int64, bool) {
	i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		i = len(s)
	}
	n, err := strconv.ParseFloat(s[:i], 64)
	unit, known := sizes[strings.ToLower(strings.TrimSpace(s[i:]))]
	if err != nil || !known || n*unit > 1<<62 {
		return 0, false
	}
	return int64(n * unit), true
}

var sizes = map[string]float64{
	"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30, "t": 1 << 40, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}

// humanCount prints a number in groups of three.
func humanCount(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
