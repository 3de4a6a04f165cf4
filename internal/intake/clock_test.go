package intake

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFind(t *testing.T) {
	paris := time.FixedZone("", 3600)
	for _, c := range []struct {
		format, record string
		loc            *time.Location
		want           string // "" is not found
	}{
		{"rfc3339", "2026-11-05T10:00:00.5Z started", nil, "2026-11-05T10:00:00.5Z"},
		{"rfc3339", "2026-11-05T10:00:00+01:00", nil, "2026-11-05T09:00:00Z"},
		{"rfc3339", "x 2026-11-05T10:00:00Z", nil, ""},
		{"rfc3339", "a [2026-11-05T10:00:00Z] b", nil, "2026-11-05T10:00:00Z"},
		{"rfc3339", "a [x] [2026-11-05T10:00:00Z] b", nil, ""},
		{"rfc3339", "a\n2026-11-05T10:00:00Z b", nil, ""},
		{"rfc3339", "\xef\xbb\xbf2026-11-05T10:00:00Z", nil, "2026-11-05T10:00:00Z"},
		{"rfc3339", "0001-01-01T00:00:00Z unset", nil, ""},
		{"rfc3339", "", nil, ""},
		{"log4j", "[2016-12-19 16:31:47,123] INFO", nil, "2016-12-19T16:31:47.123Z"},
		{"log4j", "[2016-12-19 16:31:47,123] INFO", paris, "2016-12-19T15:31:47.123Z"},
		{"laravel", "[2023-05-15 18:19:32] local.ERROR: [x]", nil, "2023-05-15T18:19:32Z"},
		{"datetime", "2023-05-15 18:19:32", nil, "2023-05-15T18:19:32Z"},
		{"datetime", "2023-05-15 18:19:32.5 x", nil, "2023-05-15T18:19:32.5Z"},
		{"datetime", "2023-05-15 28:19:32", nil, ""},
		{"date", "2023-05-15T18:19:32", nil, "2023-05-15T00:00:00Z"},
		{"clf", `1.2.3.4 - - [17/May/2015:10:05:03 +0200] "GET`, nil, "2015-05-17T08:05:03Z"},
		{"syslog", "Mar  7 13:06:56 host x", nil, "2026-03-07T13:06:56Z"},
		{"syslog", "<34>Oct 11 22:14:15 host x", nil, "2026-10-11T22:14:15Z"},
		{"syslog", "<34>1 2003-10-11T22:14:15Z", nil, ""},
		{"unix", "1700000000.25 x", nil, "2023-11-14T22:13:20.25Z"},
		{"unix", "-1.5 x", nil, "1969-12-31T23:59:58.5Z"},
		{"unix", "x", nil, ""},
		{"unix", "1.2.3", nil, ""},
		{"unix", "99999999999999999999", nil, ""},
		{"unix_ms", "[1700000000123]", nil, "2023-11-14T22:13:20.123Z"},
		{"unix_us", "1700000000123456", nil, "2023-11-14T22:13:20.123456Z"},
		{"unix_ns", "1700000000123456789", nil, "2023-11-14T22:13:20.123456789Z"},
		{"2006/01/02 15:04:05", "2015/10/30 23:58:19 [error] 1#1", nil, "2015-10-30T23:58:19Z"},
		{"Mon Jan _2 15:04:05 2006", "[Wed Oct 11 14:32:52 2000] [error]", nil, "2000-10-11T14:32:52Z"},
	} {
		k, err := newClock(&Options{TsFormat: c.format, Location: c.loc, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if at, ok := k.find([]byte(c.record)); ok {
			got = at.UTC().Format(time.RFC3339Nano)
		}
		if got != c.want {
			t.Errorf("%s in %q: got %q, want %q", c.format, c.record, got, c.want)
		}
	}
}

// Each named format reads its own example, and nothing behind it.
func TestExamples(t *testing.T) {
	for _, f := range TsFormats {
		c, err := newClock(&Options{TsFormat: f.Name, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.parse(" " + f.Example + " "); err != nil {
			t.Error(err)
		}
		if _, err := c.parse(f.Example + " x"); err == nil || !strings.Contains(err.Error(), f.Name) {
			t.Errorf("%s with more behind it: %v", f.Name, err)
		}
	}
}

func TestAuto(t *testing.T) {
	c, err := newClock(&Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int64{
		"2023-11-14T22:13:20Z": 1700000000, "1700000000": 1700000000, "1700000000000": 1700000000, "0": 0,
	} {
		if at, err := c.parse(text); err != nil || at.Unix() != want {
			t.Errorf("%s: %v %v", text, at, err)
		}
	}
	for _, text := range []string{"", "-", "noon", "2023-11-14", "17 x"} {
		if at, err := c.parse(text); err == nil {
			t.Errorf("%q: got %v", text, at)
		}
	}
}

func TestYears(t *testing.T) {
	for _, c := range []struct {
		year        int
		now         string
		times, want string
	}{
		// What lies more than a week after now is of the year before; what lies less far ahead is of a wrong clock.
		{0, "2026-11-21", "Mar 27,Nov 22,Nov 23,Nov 29", "2026-03-27,2026-11-22,2026-11-23,2025-11-29"},
		{0, "2026-01-15", "Nov 30,Dec 31,Jan  1,Jan 15", "2025-11-30,2025-12-31,2026-01-01,2026-01-15"},
		{0, "2026-12-31", "Jan  1", "2027-01-01"}, // midnight is within a day of now
		{0, "2026-11-21", "Feb 29", "2024-02-29"},
		{0, "2103-01-01", "Feb 29", "2096-02-29"},
		// The year is followed over its turn, and back when lines are out of order.
		{2019, "", "Mar 27,Apr  1", "2019-03-27,2019-04-01"},
		{2019, "", "Nov 30,Dec 31,Jan  1,Dec 31,Jan  2,Jun 30,Dec 30,Jan  3", "2019-11-30,2019-12-31,2020-01-01,2019-12-31,2020-01-02,2020-06-30,2020-12-30,2021-01-03"},
		{2019, "", "Feb 29,Mar  1", "no,2019-03-01"},
		{2019, "", "Dec 31,Feb 29", "2019-12-31,2020-02-29"},
	} {
		o := Options{TsFormat: "Jan _2", Year: c.year}
		if c.now != "" {
			o.Now, _ = time.Parse(time.DateOnly, c.now)
		}
		k, err := newClock(&o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range strings.Split(c.times, ",") {
			if at, err := k.parse(s); err != nil {
				got = append(got, "no")
			} else {
				got = append(got, at.Format(time.DateOnly))
			}
		}
		if g := strings.Join(got, ","); g != c.want {
			t.Errorf("%s in %d at %s:\n got %s\nwant %s", c.times, c.year, c.now, g, c.want)
		}
	}
}

// Any instant written in a format is read back, to the format's precision.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(0, rapid.Int64Range(1, 9e18).Draw(t, "ns")).UTC()
		f := rapid.SampledFrom(TsFormats).Draw(t, "format")
		if f.unit != 0 || f.Name == "date" || f.Name == "syslog" {
			return
		}
		c, err := newClock(&Options{TsFormat: f.Name})
		if err != nil {
			t.Fatal(err)
		}
		got, ok := c.find([]byte("[" + at.Format(f.layout) + "] and more"))
		if !ok || !got.Equal(at.Truncate(time.Second)) {
			t.Fatalf("%s: %s became %s", f.Name, at, got)
		}
	})
}
