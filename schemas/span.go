package schemas

import (
	"strconv"
	"strings"
	"time"
)

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
