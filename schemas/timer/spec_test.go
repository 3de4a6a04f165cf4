package timer

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// code returns a refusal's code.
func code(err error) Code {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// TestBadInput holds that each bad input has a code of its own.
func TestBadInput(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec := func(f func(*Spec)) error {
		s := Spec{URL: "https://hooks.example.com/x"}
		f(&s)
		return s.Validate([]string{"hooks.example.com", "*.example.org"})
	}
	due := func(text string) error {
		d, err := ParseDue(text, now)
		if err != nil {
			return err
		}
		_, err = CheckDue(d, now)
		return err
	}
	for text, want := range map[string]time.Duration{"+2s": 2 * time.Second, "+1d": 24 * time.Hour, "+1w2d": 9 * 24 * time.Hour, "+1h30m": 90 * time.Minute, "+0": 0} {
		if d, err := ParseDue(text, now); err != nil || d.Sub(now) != want {
			t.Errorf("%s is %s from now, %v; want %s", text, d.Sub(now), err, want)
		}
	}
	g := Group{Name: "g", Slots: 16}
	for _, c := range []struct {
		name string
		err  error
		want Code
	}{
		{"no due", due(""), CodeDueMissing},
		{"zero due", second(CheckDue(time.Time{}, now)), CodeDueMissing},
		{"due is not a time", due("tomorrow"), CodeDueFormat},
		{"due by a bad length", due("+2x"), CodeDueFormat},
		{"due by days of a letter more", due("+1dd"), CodeDueFormat},
		{"due in eleven years of days", due("+4015d"), CodeDueAhead},
		{"due in the past", due("2026-01-02T03:04:03.9Z"), CodeDuePast},
		{"due in eleven years", due("2037-01-02T03:04:05Z"), CodeDueAhead},
		{"long URL", spec(func(s *Spec) { s.URL = "https://hooks.example.com/" + strings.Repeat("x", 2049-26) }), CodeURLSize},
		{"ftp", spec(func(s *Spec) { s.URL = "ftp://hooks.example.com/" }), CodeURLScheme},
		{"file", spec(func(s *Spec) { s.URL = "file:///etc/passwd" }), CodeURLScheme},
		{"no host", spec(func(s *Spec) { s.URL = "http:///x" }), CodeURL},
		{"no URL", spec(func(s *Spec) { s.URL = "" }), CodeURLScheme},
		{"userinfo", spec(func(s *Spec) { s.URL = "http://a:b@hooks.example.com/" }), CodeURLUser},
		{"other host", spec(func(s *Spec) { s.URL = "http://evil.example/" }), CodeHost},
		{"the wildcard's own name", spec(func(s *Spec) { s.URL = "http://example.org/" }), CodeHost},
		{"a name that ends alike", spec(func(s *Spec) { s.URL = "http://evilexample.org/" }), CodeHost},
		{"large payload", spec(func(s *Spec) { s.Payload = []byte(`"` + strings.Repeat("x", MaxPayloadBytes-1) + `"`) }), CodePayloadSize},
		{"payload is not UTF-8", spec(func(s *Spec) { s.Payload = []byte("\"\xff\"") }), CodePayload},
		{"payload is text", spec(func(s *Spec) { s.Payload = []byte("hello") }), CodePayload},
		{"timeout above the cap", spec(func(s *Spec) { s.Timeout = 31 * time.Second }), CodeTimeout},
		{"timeout 0", second(ParseTimeout("0s")), CodeTimeout},
		{"multiplier", spec(func(s *Spec) { s.Retry = &Policy{Attempts: 2, Multiplier: 0.5} }), CodeMultiplier},
		{"attempts", spec(func(s *Spec) { s.Retry = &Policy{} }), CodeAttempts},
		{"interval", spec(func(s *Spec) { s.Retry = &Policy{Attempts: 2, Initial: -1} }), CodeInterval},
		{"duration", spec(func(s *Spec) { s.Retry = &Policy{Attempts: 2, MaxDuration: -1} }), CodeDuration},
		{"retry_on", spec(func(s *Spec) { s.Retry = &Policy{Attempts: 2, RetryOn: []int{500}} }), CodeRetryOn},
		{"lateness", spec(func(s *Spec) { s.MaxLateness = -1 }), CodeLateness},
		{"long id", second(g.Key(strings.Repeat("x", 256), 4)), CodeIDSize},
		{"id with a dot", second(g.Key("a.b", 4)), CodeID},
		{"id with a star", second(g.Key("a*", 4)), CodeID},
		{"id with >", second(g.Key("a>", 4)), CodeID},
		{"id with a space", second(g.Key("a b", 4)), CodeID},
		{"group", (&Group{Name: "G", Slots: 16}).Validate(), CodeGroup},
		{"slots", (&Group{Name: "g"}).Validate(), CodeSlots},
		{"hosts", (&Group{Name: "g", Slots: 1, AllowHosts: []string{"https://x"}}).Validate(), CodeAllowHosts},
		{"secret", (&Group{Name: "g", Slots: 1, SecretRef: "A B"}).Validate(), CodeSecret},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := code(c.err); got != c.want {
				t.Errorf("%v: code %q, want %q", c.err, got, c.want)
			}
		})
	}
	for _, u := range []string{"https://hooks.example.com/x?y=z", "http://a.example.org:8080/", "http://HOOKS.example.com./"} {
		if err := CheckURL(u, []string{"hooks.example.com", "*.example.org"}); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	if ns, err := CheckDue(now.Add(-900*time.Millisecond), now); err != nil || ns != now.UnixNano() {
		t.Errorf("due 0.9 s ago: %d, %v; want now", ns, err)
	}
}
