package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Step is the length of a histogram's buckets; the zero value has no buckets.
type Step struct {
	// Length is a number of nanoseconds, counted from 1970 on in UTC. Days begin at midnight in Zone,
	// and whole weeks on a Monday there.
	Length time.Duration
	// Months, in place of Length, is a number of months, counted from a January on.
	Months int
	// Zone is where days, weeks and months begin; nil: UTC. A day in which its clocks change is of 23 or 25
	// hours, or what they make of it.
	Zone *time.Location
}

// maxMonths is a step of a hundred years.
const maxMonths = 1200

// ParseStep reads the length of a step, such as 1m, 7d or 1mo, and the name of its zone; empty: UTC.
func ParseStep(text, zone string) (s Step, err error) {
	if number, ok := strings.CutSuffix(text, "mo"); ok {
		if s.Months, err = strconv.Atoi(number); err != nil || s.Months < 1 || s.Months > maxMonths {
			return s, fmt.Errorf("%w: %q: expected 1 to %d months, such as 1mo", schemas.ErrRequest, text, maxMonths)
		}
	} else if s.Length, ok = schemas.ParseSpan(text); !ok || s.Length <= 0 {
		return s, fmt.Errorf("%w: %q is not a length of time, such as 1m, 7d or 1mo", schemas.ErrRequest, text)
	}
	s.Zone, err = time.LoadLocation(zone)
	if err != nil || s.Zone == time.Local {
		return s, fmt.Errorf("%w: %q is not a time zone that this machine knows; expected a name such as Europe/Vienna", schemas.ErrRequest, zone)
	}
	return s, nil
}

// None reports whether there are no buckets.
func (s Step) None() bool { return s.Length == 0 && s.Months == 0 }

func (s Step) validate() error {
	if s.Length < 0 || s.Months < 0 || s.Months > maxMonths || s.Length > 0 && s.Months > 0 {
		return fmt.Errorf("%w: the step is %s and %d months, it must be one of the two and longer than 0", schemas.ErrRequest, s.Length, s.Months)
	}
	return nil
}

const day = 24 * time.Hour

// days returns how many days a step has that goes by the calendar of its zone; 0: it does not.
func (s Step) days() int64 {
	if s.Months > 0 || s.Zone == nil || s.Zone == time.UTC || s.Length%day != 0 {
		return 0
	}
	return int64(s.Length / day)
}

func (s Step) zone() *time.Location {
	if s.Zone == nil {
		return time.UTC
	}
	return s.Zone
}

// number returns the number of the bucket that a time is in.
func (s Step) number(ns int64) int64 {
	if s.Months == 0 && s.days() == 0 {
		return (ns + int64(s.shift())) / int64(s.Length)
	}
	y, m, d := time.Unix(0, ns).In(s.zone()).Date()
	if s.Months > 0 {
		return int64(y*12+int(m)-1) / int64(s.Months)
	}
	return floorDiv(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()/int64(day/time.Second)+int64(s.shift()/day), s.days())
}

// begins returns when a bucket begins.
func (s Step) begins(n int64) time.Time {
	switch days := s.days(); {
	case s.Months > 0:
		months := n * int64(s.Months)
		return dayBegins(int(months/12), time.Month(months%12+1), 1, s.zone()).UTC()
	case days > 0:
		return dayBegins(1970, time.January, int(1+n*days-int64(s.shift()/day)), s.zone()).UTC()
	}
	return time.Unix(0, n*int64(s.Length)-int64(s.shift())).UTC()
}

// expression is number in ClickHouse, of the column ts.
func (s Step) expression() string {
	local := "toTimeZone(ts, " + sql.QuoteText(s.zone().String()) + ")"
	switch days := s.days(); {
	case s.Months > 0:
		return fmt.Sprintf("intDiv(toYear(%s) * 12 + toMonth(%[1]s) - 1, %d)", local, s.Months)
	case days > 0:
		return fmt.Sprintf("toInt64(floor((toInt32(toDate32(%s)) + %d) / %d))", local, s.shift()/day, days)
	}
	return fmt.Sprintf("intDiv(toUnixTimestamp64Nano(ts) + %d, %d)", s.shift(), int64(s.Length))
}

// shift is what 1970 began after a Monday, for steps of whole weeks, which begin on
// one; others begin with 1970.
func (s Step) shift() time.Duration {
	if s.Length > 0 && s.Length%(7*day) == 0 {
		return 3 * day // it was a Thursday
	}
	return 0
}

// String is a step as people write it: 1m, not 1m0s.
func (s Step) String() string {
	if s.Months > 0 {
		return strconv.Itoa(s.Months) + "mo"
	}
	if s.Length > 0 && s.Length%day == 0 {
		return strconv.FormatInt(int64(s.Length/day), 10) + "d"
	}
	name := s.Length.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(name, zero) {
			name = name[:len(name)-2]
		}
	}
	return name
}

// dayBegins returns the first instant of a day in a zone. Where the clocks go forward at midnight the day
// begins later, and where they go back to it, at the first of the two.
func dayBegins(y int, m time.Month, d int, zone *time.Location) time.Time {
	t := time.Date(y, m, d, 0, 0, 0, 0, zone)
	want := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
	if localDay(t) < want { // there is no such midnight
		_, t = t.ZoneBounds()
	}
	if begin, _ := t.ZoneBounds(); !begin.IsZero() {
		_, now := t.Zone()
		_, before := begin.Add(-1).Zone()
		if first := t.Add(time.Duration(now-before) * time.Second); first.Before(begin) && localDay(first) == want {
			return first
		}
	}
	return t
}

// localDay is the day of a time in its zone, as midnight in UTC.
func localDay(t time.Time) int64 {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
}

func floorDiv(a, b int64) int64 { return int64(math.Floor(float64(a) / float64(b))) }
