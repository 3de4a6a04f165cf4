package schemas

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var privacyKey = []byte("0123456789abcdef")

func privateTopic(rules ...Private) Topic {
	t := NewTopic("app", Field{Name: "lat", Type: TypeFloat64}, Field{Name: "host", Type: TypeString})
	t.PII = rules
	return t
}

func TestPrivacyRules(t *testing.T) {
	topic := privateTopic(
		Private{Field: "user_id", Rule: PrivacyHash}, Private{Field: "message", Rule: PrivacyDrop},
		Private{Field: "ip", Rule: PrivacyTruncateIP}, Private{Field: "attributes.email", Rule: PrivacyDrop},
		Private{Field: "lat", Rule: PrivacyCoarseLocation}, Private{Field: "at", Rule: PrivacyCoarseLocation, Grid: 0.25},
		Private{Field: "card", Rule: PrivacyHash},
	)
	if err := topic.Validate(); err != nil {
		t.Fatal(err)
	}
	given := []Attr{String("ip", "203.0.113.77"), String("email", "a@b.c"), Float64("lat", 52.51749), String("at", "52.517, -13.39"),
		Int64("card", 4711), String("other", "stays")}
	e := Event{UserID: "u-7", Message: "secret", Service: "s", Attrs: given}
	NewPrivacy(&topic, privacyKey).Apply(&e)
	// printf u-7 | openssl dgst -sha256 -hmac 0123456789abcdef | cut -c1-32
	const hashU7, hash4711 = "c061d17d0a9f81968e3975c82ac25a96", "d6f9c71fc9711c566dabe39ff39faefa"
	want := []Attr{String("ip", "203.0.113.0"), String("email", ""), Float64("lat", 52.5), String("at", "52.5,-13.5"), String("card", hash4711), String("other", "stays")}
	if diff := cmp.Diff(want, e.Attrs, cmp.AllowUnexported(Attr{})); diff != "" {
		t.Error(diff)
	}
	if e.UserID != hashU7 || e.Message != "" || e.Service != "s" {
		t.Errorf("%+v", e)
	}
	if given[0].Text() != "203.0.113.77" || len(given) != 6 {
		t.Error("the caller's attributes were changed")
	}
	// Without a key, what should be hashed is dropped.
	e = Event{UserID: "u-7", Attrs: []Attr{Int64("card", 4711)}}
	NewPrivacy(&topic, nil).Apply(&e)
	if e.UserID != "" || len(e.Attrs) != 1 || e.Attrs[0] != String("card", "") {
		t.Errorf("%+v", e)
	}
	if plain := NewTopic("app"); NewPrivacy(&plain, privacyKey) != nil {
		t.Error("rules where there are none")
	}
}

func TestTruncateIP(t *testing.T) {
	for in, want := range map[string]string{
		"203.0.113.77": "203.0.113.0", "203.0.113.77:443": "203.0.113.0", " 10.1.2.3 ": "10.1.2.0",
		"2001:db8:1:2:3::4": "2001:db8:1::", "[2001:db8:1:2::1]:80": "2001:db8:1::", "::1": "::",
		"::ffff:203.0.113.77": "203.0.113.0", "fe80::1%eth0": "fe80::",
		"2002:cb00:714d::1": "2002:cb00:7100::",
		"":                  "", "host.example": "", "1.2.3": "", "1.2.3.4, 5.6.7.8": "", "999.1.1.1": "",
	} {
		if got, ok := truncateIP(in); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
}

func TestCoarseLocation(t *testing.T) {
	for in, want := range map[string]string{
		"52.51749,13.39": "52.5,13.4", "52.56": "52.6", "-0.04": "0", "180": "180", "-179.96, 89.99": "-180,90",
		"north": "", "1,2,3": "", "NaN": "", "1e9": "", "": "", "52.5,": "",
	} {
		if got, ok := coarseText(in, DefaultGrid); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f, grid := rapid.Float64Range(-180, 180).Draw(t, "f"), rapid.Float64Range(0.01, 5).Draw(t, "grid")
		got, ok := coarse(f, grid)
		if n := got / grid; !ok || math.Abs(got-f) > grid/2+1e-9 || math.Abs(n-math.Round(n)) > 1e-6 {
			t.Fatalf("%g on %g: %g", f, grid, got)
		}
	})
}

// Whatever the value, a rule lets nothing of it through but what the rule says.
func FuzzPrivacyText(f *testing.F) {
	for _, s := range []string{"203.0.113.77", "2001:db8::1", "52.5,13.4", "a@b.c", "u-7", "[::1]:9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &Privacy{key: privacyKey}
		for _, rule := range PrivacyRules {
			got, ok := r.text(Private{Rule: rule, Grid: DefaultGrid}, s)
			switch {
			case !ok && got != "":
				t.Fatalf("%s of %q: not ok and %q", rule, s, got)
			case rule == PrivacyDrop && ok:
				t.Fatalf("drop of %q: %q", s, got)
			case rule == PrivacyHash && s != "" && len(got) != HashDigits:
				t.Fatalf("hash of %q: %q", s, got)
			case rule == PrivacyTruncateIP && ok:
				if again, ok := truncateIP(got); !ok || again != got {
					t.Fatalf("%q became %q, and that %q", s, got, again)
				}
			}
		}
	})
}

func TestPrivacyIsValidated(t *testing.T) {
	for want, rules := range map[string][]Private{
		"rule \"mask\"":           {{Field: "ip", Rule: "mask"}},
		"field \"ts\" cannot":     {{Field: "ts", Rule: PrivacyDrop}},
		"\"level\" cannot":        {{Field: "level", Rule: PrivacyHash}},
		"twice":                   {{Field: "ip", Rule: PrivacyDrop}, {Field: "attributes.ip", Rule: PrivacyHash}},
		"which only":              {{Field: "ip", Rule: PrivacyHash, Grid: 1}},
		"grid of 91":              {{Field: "at", Rule: PrivacyCoarseLocation, Grid: 91}},
		"lane_by":                 {{Field: "user_id", Rule: PrivacyDrop}},
		"whose column is float64": {{Field: "lat", Rule: PrivacyHash}},
		"1 to 256 bytes":          {{Field: "attributes.", Rule: PrivacyDrop}},
		"the event's time":        {{Field: "@timestamp", Rule: PrivacyDrop}},
		"\"MSG\" twice":           {{Field: "message", Rule: PrivacyDrop}, {Field: "MSG", Rule: PrivacyDrop}},
	} {
		topic := privateTopic(rules...)
		if err := topic.Validate(); !errors.Is(err, ErrTopic) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", rules, err, want)
		}
	}
	live, changed := privateTopic(), privateTopic(Private{Field: "ip", Rule: PrivacyDrop})
	if got, err := live.Evolve(changed); err != nil || len(got.PII) != 1 || got.Version != live.Version+1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := CheckPrivacyKey([]byte("short")); !errors.Is(err, ErrPrivacyKey) {
		t.Error(err)
	}
}
