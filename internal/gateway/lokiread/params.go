package lokiread

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/almanac-events/almanac/query/logql"
)

// defaultSpan is the range of a request that names none, as Loki has it.
const defaultSpan = time.Hour

// parseTime reads nanoseconds since 1970, seconds since then where they have a fraction or ten digits at most, or RFC 3339.
func parseTime(text string) (time.Time, error) {
	if strings.Contains(text, ".") {
		if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < math.MaxInt64/1e9 {
			whole, part := math.Modf(s)
			return time.Unix(int64(whole), int64(math.Round(part*1000)*1e6)).UTC(), nil
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if len(text) <= 10 {
			return time.Unix(n, 0).UTC(), nil
		}
		return time.Unix(0, n).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, badRequest("could not parse %q as a timestamp: give nanoseconds since 1970, or RFC 3339", text)
	}
	return t.UTC(), nil
}

// parseStep reads seconds, or a duration such as 5m.
func parseStep(text string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(s) || s*1e3 < 1 || s >= math.MaxInt64/1e9 {
			return 0, badRequest("step must be a number of seconds from 0.001, not %s", text)
		}
		return time.Duration(s * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, badRequest("could not parse %q as a step: give seconds, or a number with a unit, such as 5m", text)
	}
	return time.Duration(d), nil
}

// span reads start and end, or since. Without them it is the last hour.
func span(r *http.Request) (from, to time.Time, err error) {
	to = time.Now().UTC()
	if text := r.FormValue("end"); text != "" {
		if to, err = parseTime(text); err != nil {
			return from, to, err
		}
	}
	from = to.Add(-defaultSpan)
	if text := r.FormValue("since"); text != "" {
		d, err := parseStep(text)
		if err != nil {
			return from, to, err
		}
		from = to.Add(-d)
	}
	if text := r.FormValue("start"); text != "" {
		if from, err = parseTime(text); err != nil {
			return from, to, err
		}
	}
	if !from.Before(to) && !from.Equal(to) {
		return from, to, badRequest("end timestamp must not be before start time")
	}
	return from, to, nil
}

// number reads a whole number from 1 to most.
func number(r *http.Request, name string, def, most int) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 1:
		return 0, badRequest("%s must be a whole number from 1, not %q", name, text)
	case n > most:
		return 0, badRequest("max entries limit per query exceeded, limit > max_entries_limit_per_query (%d > %d)", n, most)
	}
	return n, nil
}

// selector reads a query that says which lines; one that is left out is all.
func selector(r *http.Request, name string) (*logql.Pipeline, error) {
	text := r.FormValue(name)
	if text == "" {
		return &logql.Pipeline{}, nil
	}
	return logql.ParseSelector(text)
}
