package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// parseTime reads a point in time, as query.ParseTime does. Empty is the zero time.
func parseTime(s string, now time.Time) (time.Time, error) {
	t, err := query.ParseTime(s, now)
	if err != nil {
		return t, usageError{err}
	}
	return t, nil
}

// parseEnd reads the time at which a range ends, as query.ParseEnd does.
func parseEnd(s string, now time.Time) (time.Time, error) {
	t, err := query.ParseEnd(s, now)
	if err != nil {
		return t, usageError{err}
	}
	return t, nil
}

// parseSpan reads a length of time, as query.ParseSpan does.
func parseSpan(s string) (time.Duration, bool) { return schemas.ParseSpan(s) }

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
