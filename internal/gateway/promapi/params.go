package promapi

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
)

func badParameter(name string, err error) error {
	return badData("invalid parameter %q: %v", name, err)
}

// parseTime reads seconds since 1970, or RFC 3339.
func parseTime(text string) (time.Time, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(s) || math.Abs(s) > math.MaxInt64/1e9 {
			return time.Time{}, fmt.Errorf("%q is not an instant", text)
		}
		whole, part := math.Modf(s)
		return time.Unix(int64(whole), int64(math.Round(part*1000)*1e6)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("cannot parse %q to a valid timestamp: give seconds since 1970, or RFC 3339", text)
	}
	return t, nil
}

// timeOr reads a parameter that may be left out.
func timeOr(r *http.Request, name string, def time.Time) (time.Time, error) {
	text := r.FormValue(name)
	if text == "" {
		return def, nil
	}
	t, err := parseTime(text)
	if err != nil {
		return t, badParameter(name, err)
	}
	return t, nil
}

// parseDuration reads seconds, or a duration such as 5m.
func parseDuration(text string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(s) || math.Abs(s) > math.MaxInt64/1e9 {
			return 0, fmt.Errorf("%q is not a duration", text)
		}
		return time.Duration(s * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("cannot parse %q to a valid duration: give seconds, or a number with a unit, such as 5m", text)
	}
	return time.Duration(d), nil
}

// limit reads how many results are asked for; 0 is all.
func limit(r *http.Request) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badData("invalid parameter %q: %q is not a whole number from 0", "limit", text)
	}
	return n, nil
}
