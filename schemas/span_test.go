package schemas

import (
	"testing"
	"time"
)

func TestParseSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"0": 0, "0s": 0, "15s": 15 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "24h0m0s": 24 * time.Hour, "1.5µs": 1500} {
		if got, ok := ParseSpan(text); !ok || got != want {
			t.Errorf("ParseSpan(%q) = %s, %v; want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "5", "s", "-1s", "1s2", "1 s"} {
		if got, ok := ParseSpan(text); ok {
			t.Errorf("ParseSpan(%q) = %s, want a refusal", text, got)
		}
	}
}
