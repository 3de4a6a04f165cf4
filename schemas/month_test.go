package schemas

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestMonthOf(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-31T23:59:59.999999999Z": "2026-01",
		"2026-02-01T00:00:00Z":           "2026-02",
		"2026-01-31T19:00:00-05:00":      "2026-02", // an hour of another zone
		"2026-02-01T00:59:59+01:00":      "2026-01",
		"2024-02-29T12:00:00Z":           "2024-02", // leap day
		"2025-12-31T23:59:59Z":           "2025-12",
		"2026-01-01T00:00:00Z":           "2026-01",
		"2026-03-29T02:30:00+02:00":      "2026-03", // in no European hour
		"1970-01-01T00:00:01Z":           "1970-01",
		"2261-12-31T00:00:00Z":           "2261-12",
	} {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := MonthOf(at.UnixNano()).String(); got != want {
			t.Errorf("%s is in %s, want %s", text, got, want)
		}
	}
}

func TestParseMonth(t *testing.T) {
	for _, s := range []string{"", "2026", "2026-13", "2026-00", "2026-1", "26-01", "2026/01", "2026-011", "+026-01", "2026-0x", "1969-12", "2262-01", " 2026-01"} {
		if m, err := ParseMonth(s); !errors.Is(err, ErrMonth) {
			t.Errorf("%q is month %v, %v; want it refused", s, m, err)
		}
	}
}

// A month contains exactly the times it is the month of, and its neighbours
// follow without a gap.
func TestMonthBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ts := rapid.Int64Range(1, time.Date(2261, 12, 31, 0, 0, 0, 0, time.UTC).UnixNano()).Draw(rt, "ts")
		m := MonthOf(ts)
		if !m.Contains(ts) || m.Next().Contains(ts) || m.End() != m.Next().Start() || MonthOf(m.Start()) != m || MonthOf(m.End()-1) != m {
			rt.Fatalf("%d in %s: start %d, end %d", ts, m, m.Start(), m.End())
		}
		if back, err := ParseMonth(m.String()); err != nil || back != m {
			rt.Fatalf("%s reads back as %s, %v", m, back, err)
		}
	})
}
