package query

import (
	"math"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Skipf("this machine does not know the zone: %v", err)
	}
	return zone
}

// TestDaysOfZones goes through every day of zones whose clocks change at midnight, back to it, over it, or
// by a whole day: a day begins where its date does, and the first instant of a bucket has its number.
func TestDaysOfZones(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Europe/Vienna", "America/New_York", "America/Sao_Paulo", "America/Havana", "Atlantic/Azores", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone := zoneOf(t, name)
			for _, step := range []Step{{Length: day, Zone: zone}, {Length: 7 * day, Zone: zone}, {Length: 3 * day, Zone: zone}, {Months: 1, Zone: zone}, {Months: 3, Zone: zone}} {
				last := step.number(time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano())
				for n := step.number(time.Date(2009, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano()); n < last; n++ {
					begin, end := step.begins(n), step.begins(n+1)
					if begin.Equal(end) {
						continue // Apia left one out
					}
					if step.number(begin.UnixNano()) != n || step.number(begin.UnixNano()-1) >= n || step.number(end.UnixNano()-1) != n {
						t.Fatalf("%s: bucket %d is %s to %s, and these are in buckets %d, %d and %d", step, n, begin.In(zone), end.In(zone), step.number(begin.UnixNano()), step.number(begin.UnixNano()-1), step.number(end.UnixNano()-1))
					}
					if local := begin.In(zone); step.Months > 0 && local.Day() != 1 || step.Length == 7*day && local.Weekday() != time.Monday {
						t.Fatalf("%s: a bucket begins on %s", step, local)
					}
				}
			}
		})
	}
}

// TestDaysOfAChange has the days of 23 and 25 hours.
func TestDaysOfAChange(t *testing.T) {
	t.Parallel()
	step := Step{Length: day, Zone: zoneOf(t, "Europe/Vienna")}
	for date, hours := range map[string]float64{"2026-03-28": 24, "2026-03-29": 23, "2026-10-25": 25, "2026-10-26": 24} {
		at, err := time.ParseInLocation(time.DateOnly, date, step.Zone)
		if err != nil {
			t.Fatal(err)
		}
		n := step.number(at.UnixNano())
		if begin := step.begins(n); !begin.Equal(at) || step.begins(n+1).Sub(begin).Hours() != hours {
			t.Errorf("%s begins at %s and has %s", date, begin, step.begins(n+1).Sub(begin))
		}
	}
	first := time.Date(2026, 3, 1, 0, 0, 0, 0, step.Zone)
	got := buckets(map[cell]uint64{{Step{Months: 1, Zone: step.Zone}.number(first.UnixNano()), ""}: 2}, Step{Months: 1, Zone: step.Zone}, 1, math.MaxInt64, false)
	if len(got) != 1 || !got[0].At.Equal(first) || got[0].Count != 2 {
		t.Errorf("a month is %v", got)
	}
}

func TestParseStep(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"1m": "1m", "90s": "1m30s", "1d": "1d", "24h": "1d", "7d": "7d", "36h": "36h", "1mo": "1mo", "12mo": "12mo", "0": "", "": "", "mo": "", "0mo": "", "-1mo": "", "1201mo": "", "1.5mo": "", "x": "", "-1h": ""} {
		s, err := ParseStep(text, "")
		if got := s.String(); (err != nil) != (want == "") || err == nil && (got != want || s.validate() != nil) {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
	for _, zone := range []string{"Local", "../../etc/passwd", "Europe/Nowhere", "'"} {
		if _, err := ParseStep("1d", zone); err == nil {
			t.Errorf("the zone %q was taken", zone)
		}
	}
}

// Steps of whole weeks begin on a Monday, in UTC too, whatever the range and the first event.
func TestWeeksBeginOnMonday(t *testing.T) {
	t.Parallel()
	sunday := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []Step{{Length: 7 * day}, {Length: 14 * day}, {Length: day}} {
		cells := map[cell]uint64{}
		cells[cell{step.number(sunday.UnixNano()), ""}]++
		cells[cell{step.number(sunday.Add(day).UnixNano()), ""}]++
		for _, from := range []int64{1, sunday.UnixNano()} {
			b := buckets(cells, step, from, math.MaxInt64, false)
			if len(b) != len(cells) || b[0].At.After(sunday) || sunday.Sub(b[0].At) >= step.Length {
				t.Fatalf("%s: %v", step, b)
			}
			if want := step.Length%(7*day) == 0; want && b[0].At.Weekday() != time.Monday || !want && !b[0].At.Equal(sunday) {
				t.Errorf("%s: the first begins on %s", step, b[0].At)
			}
		}
	}
}

// TestStepOf asks for numbers of buckets over ranges of every length: the step is round, there are no more buckets, and the next shorter
// step would give more.
func TestStepOf(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 28, 22, 17, 3, 141592653, time.UTC)
	for text, want := range map[string]string{"1s": "20ms", "1m": "1s", "1h": "1m", "6h": "10m", "1d": "30m", "7d": "3h", "30d": "12h", "365d": "7d", "3650d": "2mo"} {
		length, ok := schemas.ParseSpan(text)
		if !ok {
			t.Fatal(text)
		}
		for _, zone := range []string{"", "UTC"} {
			s, err := StepOf(62, from, from.Add(length), zone)
			if err != nil || s.String() != want {
				t.Errorf("62 buckets of %s: %v %v, want %s", text, s, err, want)
			}
		}
	}
	for n := 2; n <= MaxBuckets; n += 37 {
		for length := time.Millisecond; length < 30*365*day; length *= 7 {
			to := from.Add(length)
			s, err := StepOf(n, from, to, "Europe/Vienna")
			if err != nil {
				t.Fatal(err)
			}
			if got := s.number(to.UnixNano()-1) - s.number(from.UnixNano()) + 1; got > int64(n) {
				t.Errorf("%d buckets of %s by %s, want %d at the most", got, length, s, n)
			}
		}
	}
	for name, err := range map[string]error{
		"no from": second(StepOf(60, time.Time{}, from, "")), "one": second(StepOf(1, from, from.Add(1), "")), "too many": second(StepOf(MaxBuckets+1, from, from.Add(1), "")),
		"the other way": second(StepOf(60, from, from.Add(-1), "")), "no zone": second(StepOf(60, from, from.Add(1), "Nowhere")),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }
