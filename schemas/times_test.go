package schemas

import (
	"testing"
	"time"
)

// Times are read as programs write them, each as exactly as it is written.
func TestParseTimeForms(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-25T10:00:00Z": "2026-11-25T10:00:00Z", "2026-11-25t10:00:00z": "2026-11-25T10:00:00Z", "2026-11-25 10:00:00": "2026-11-25T10:00:00Z",
		"2016-12-31T23:59:60Z": "2017-01-01T00:00:00Z", "2026-11-25T10:00:00+01": "2026-11-25T09:00:00Z", "2026-11-25T10:00:00+0100": "2026-11-25T09:00:00Z",
		"2026-11-25T10:00:00-05:30": "2026-11-25T15:30:00Z", "2026-11-25 10:00:00 +0100": "2026-11-25T09:00:00Z", "2026-11-25 10:00:00.5 UTC": "2026-11-25T10:00:00.5Z",
		"2026-11-25 10:00:00 GMT": "2026-11-25T10:00:00Z", "2026-11-25T10:00Z": "2026-11-25T10:00:00Z", "2026-11-25 10:00": "2026-11-25T10:00:00Z",
		"2026-11-25T10:00:00,123456789Z": "2026-11-25T10:00:00.123456789Z", "2026-11-25T10:00:00.1234567891Z": "2026-11-25T10:00:00.123456789Z",
		"1764064800": "2025-11-25T10:00:00Z", "1764064800.25": "2025-11-25T10:00:00.25Z", "1764064800123456": "2025-11-25T10:00:00.123456Z",
		"2024-02-29T00:00:00Z": "2024-02-29T00:00:00Z",
		"":                     "", "noon": "", "2026-11-25": "", "20261125": "", "2026-02-29T00:00:00Z": "", "2026-13-01T00:00:00Z": "", "2026-11-25T24:00:00Z": "", "2026-11-25T10:60:00Z": "",
		"2026-11-25T10:00:61Z": "", "2026-11-25T10:00:00Zulu": "", "2026-11-25T10:00:00+1": "", "2026-11-25T10:00:00+25:00": "", "2026-11-25T10:00:00 CET": "", "2026-11-25T10": "",
		"2026-11-25T10:00:00.Z": "", "2026-11-25T10:00:00+01:": "", "2026-1-25T10:00:00Z": "", "-2026-11-25T10:00:00Z": "", "2026-11-25T10:00:00 -1": "", "2026-11-25T10:00:": "",
	} {
		at, err := ParseTime(text)
		got := ""
		if err == nil {
			got = at.UTC().Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%q is %q, expected %q (%v)", text, got, want, err)
		}
	}
}

// What a time begins with is cut where it ends.
func TestISOPrefix(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-25 10:00:00 -0500 msg": " msg", "2026-11-25 10:00:00 -1 items": " -1 items", "2026-11-25 10:00:00 UTCX": " UTCX", "2026-11-25 10:00:00: x": ": x",
		"2026-11-25 10:00 started": " started", "2026-11-25T10:00:00.5Z]": "]", "2026-11-25 10:00:00 +01:00": "", "2026-11-25 10:00:00. x": ". x", "2026-11-25 10:00:0": ":0",
	} {
		_, n, ok := ISOPrefix(text, time.UTC)
		if !ok || text[n:] != want {
			t.Errorf("%q: %t, %q is left, expected %q", text, ok, text[min(n, len(text)):], want)
		}
	}
}

// A number keeps its digits, with an exponent too.
func TestParseJSONTimeKeepsDigits(t *testing.T) {
	for number, want := range map[string]int64{
		"1.764064800123e9": 1764064800123000000, "1.764064800123456789E9": 1764064800123456789, "1764064800123e-3": 1764064800123000000, "1.764064800123e12": 1764064800123000000,
		"-1.5e0": -1500000000, "15e-1": 1500000000, "0e5": 0,
	} {
		if at, err := ParseJSONTime(number); err != nil || at.UnixNano() != want {
			t.Errorf("%s is %d, expected %d: %v", number, at.UnixNano(), want, err)
		}
	}
	for _, number := range []string{"1e400", "e9", "1e", "1.x", "1e99999999999999999999", "1e41", "-1e30", "1.2.3e1"} {
		if at, err := ParseJSONTime(number); err == nil {
			t.Errorf("%s is %s", number, at)
		}
	}
}
