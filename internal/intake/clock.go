package intake

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// TsFormat is a named way to write a time.
type TsFormat struct {
	Name, Example string
	layout        string        // of Go's time package
	unit          time.Duration // of a number since the epoch; layout is empty
}

// TsFormats lists the named formats. A layout takes a fraction of a second,
// after a point or a comma, even where it shows none.
var TsFormats = []TsFormat{
	{Name: "rfc3339", Example: "2026-11-05T10:00:00.5Z", layout: time.RFC3339},
	{Name: "unix", Example: "1700000000.5", unit: time.Second},
	{Name: "unix_ms", Example: "1700000000500", unit: time.Millisecond},
	{Name: "unix_us", Example: "1700000000500000", unit: time.Microsecond},
	{Name: "unix_ns", Example: "1700000000500000000", unit: time.Nanosecond},
	{Name: "syslog", Example: "Mar 27 13:06:56", layout: time.Stamp},
	{Name: "clf", Example: "17/May/2015:10:05:03 +0000", layout: "02/Jan/2006:15:04:05 -0700"},
	{Name: "log4j", Example: "2016-12-19 16:31:47,123", layout: time.DateTime},
	{Name: "laravel", Example: "2023-05-15 18:19:32", layout: time.DateTime},
	{Name: "datetime", Example: "2006-01-02 15:04:05", layout: time.DateTime},
	{Name: "date", Example: "2006-01-02", layout: time.DateOnly},
}

// TsFormatNames are the names, for messages and help.
func TsFormatNames() []string {
	names := make([]string, len(TsFormats))
	for i, f := range TsFormats {
		names[i] = f.Name
	}
	return names
}

// maxTimeBytes bounds how much of a line is looked at for a time; the longest
// spelling in use, with weekday and zone name, has about 40.
const maxTimeBytes = 64

// clock reads times of one format.
type clock struct {
	TsFormat
	auto     bool // no format was given
	yearless bool
	loc      *time.Location

	year int
	now  time.Time
	last time.Time // the time before, when year is given
}

func newClock(o *Options) (*clock, error) {
	c := &clock{loc: o.Location, year: o.Year, now: o.Now, auto: o.TsFormat == ""}
	if c.loc == nil {
		c.loc = time.UTC
	}
	if i := slices.IndexFunc(TsFormats, func(f TsFormat) bool { return f.Name == o.TsFormat }); i >= 0 {
		c.TsFormat = TsFormats[i]
	} else if !c.auto {
		c.TsFormat = TsFormat{Name: o.TsFormat, Example: o.TsFormat, layout: o.TsFormat}
		if !readsDates(o.TsFormat) {
			return nil, fmt.Errorf("ts format is %q, it must be one of %s, or a layout of Go's time package such as %q",
				o.TsFormat, strings.Join(TsFormatNames(), ", "), "02.01.2006 15:04")
		}
	}
	c.yearless = c.layout != "" && !strings.Contains(c.layout, "06")
	return c, nil
}

// readsDates says that a layout tells a day, and an hour if it has one.
func readsDates(layout string) bool {
	want := time.Date(2022, 11, 23, 13, 14, 15, 0, time.UTC)
	got, err := time.Parse(layout, want.Format(layout))
	return err == nil && got.Month() == want.Month() && got.Day() == want.Day() &&
		(got.Hour() == want.Hour() || got.Hour() == 0)
}

// parse reads a text that is a time and nothing else.
func (c *clock) parse(text string) (time.Time, error) {
	t, rest, err := c.prefix(strings.TrimSpace(text))
	if err == nil && rest != "" {
		err = fmt.Errorf("%.64q is left over; if it is in another format, name that as ts-format, such as 2006-01-02", rest)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%.64q is not a time of format %s (%s): %w", text, c.name(), c.example(), err)
	}
	return t, nil
}

func (c *clock) name() string {
	if c.auto {
		return "rfc3339 or unix"
	}
	return c.Name
}

func (c *clock) example() string {
	if c.auto {
		return TsFormats[0].Example
	}
	return c.Example
}

// find looks for a time at the beginning of the first line of a record, and
// behind its first bracket.
func (c *clock) find(record []byte) (time.Time, bool) {
	for _, from := range places(record) {
		s := string(from[:min(len(from), maxTimeBytes)])
		if t, _, err := c.prefix(s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// prefix reads the time s begins with and returns what is behind it.
func (c *clock) prefix(s string) (t time.Time, rest string, err error) {
	switch {
	case c.auto:
		if t, rest, err = c.isoPrefix(s); err != nil {
			n := numberPrefix(s)
			t, err = schemas.ParseJSONTime(s[:n])
			rest = s[n:]
		}
	case c.layout == time.RFC3339:
		t, rest, err = c.isoPrefix(s)
	case c.unit != 0:
		n := numberPrefix(s)
		t, err = sinceEpoch(s[:n], c.unit)
		rest = s[n:]
	default:
		t, rest, err = c.layoutPrefix(c.layout, s)
		if err == nil && c.yearless {
			t, err = c.withYear(t)
		}
	}
	if err == nil {
		_, err = schemas.UnixNs(t)
	}
	return t, rest, err
}

// isoPrefix reads RFC 3339 and what programs write in its place; see
// schemas.ParseTime. A time without a zone is of the clock's.
func (c *clock) isoPrefix(s string) (t time.Time, rest string, err error) {
	t, n, ok := schemas.ISOPrefix(s, c.loc)
	if !ok {
		return t, s, errNotISO
	}
	return t, s[n:], nil
}

var errNotISO = errors.New("it is not written so")

// layoutPrefix parses as far as the layout goes: the parser's own error
// about extra text tells where that is.
func (c *clock) layoutPrefix(layout, s string) (time.Time, string, error) {
	t, err := time.ParseInLocation(layout, s, c.loc)
	var extra *time.ParseError
	if errors.As(err, &extra) && strings.HasPrefix(extra.Message, ": extra text") && extra.ValueElem != "" {
		end := len(s) - len(extra.ValueElem)
		t, err = time.ParseInLocation(layout, s[:end], c.loc)
		return t, s[end:], err
	}
	return t, "", err
}

// numberPrefix is how much of s is a decimal number.
func numberPrefix(s string) int {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.' || s[n] == '-' && n == 0) {
		n++
	}
	return n
}

// sinceEpoch reads a decimal number of units, to the nanosecond.
func sinceEpoch(s string, unit time.Duration) (time.Time, error) {
	whole, frac, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	digits := len(strconv.Itoa(int(unit))) - 1
	part, err2 := strconv.ParseUint("0"+(frac + "000000000")[:digits], 10, 63)
	if err != nil || err2 != nil {
		return time.Time{}, fmt.Errorf("%q is not a number", s)
	}
	per := int64(time.Second / unit)
	ns := int64(part)
	if strings.HasPrefix(whole, "-") {
		ns = -ns
	}
	return time.Unix(n/per, n%per*int64(unit)+ns).UTC(), nil
}

// withYear gives a year to a time that was written without one.
func (c *clock) withYear(t time.Time) (time.Time, error) {
	at := func(year int) time.Time {
		return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
	}
	if c.year == 0 {
		a, ok := schemas.WithYear(t, c.now)
		if !ok {
			return t, fmt.Errorf("no year fits %s", t.Format(time.Stamp))
		}
		return a, nil
	}
	best, years := time.Time{}, []int{c.year}
	if !c.last.IsZero() {
		y := c.last.Year()
		years = []int{y, y - 1, y + 1}
	}
	for _, y := range years {
		a := at(y)
		if a.Day() == t.Day() && (best.IsZero() || a.Sub(c.last).Abs() < best.Sub(c.last).Abs()) {
			best = a
		}
	}
	if best.IsZero() {
		return t, fmt.Errorf("%d has no %s", years[0], t.Format("2 January"))
	}
	c.last = best
	return best, nil
}
