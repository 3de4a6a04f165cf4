package privacy

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var privacyKey = []byte("0123456789abcdef")

func privateTopic(rules ...schemas.Private) schemas.Topic {
	t := schemas.NewTopic("app", schemas.Field{Name: "lat", Type: schemas.TypeFloat64}, schemas.Field{Name: "host", Type: schemas.TypeString})
	t.PII = rules
	return t
}

func TestPrivacyRules(t *testing.T) {
	topic := privateTopic(
		schemas.Private{Field: "user_id", Rule: schemas.PrivacyHash}, schemas.Private{Field: "message", Rule: schemas.PrivacyDrop},
		schemas.Private{Field: "ip", Rule: schemas.PrivacyTruncateIP}, schemas.Private{Field: "attributes.email", Rule: schemas.PrivacyDrop},
		schemas.Private{Field: "lat", Rule: schemas.PrivacyCoarseLocation}, schemas.Private{Field: "at", Rule: schemas.PrivacyCoarseLocation, Grid: 0.25},
		schemas.Private{Field: "card", Rule: schemas.PrivacyHash},
	)
	if err := topic.Validate(); err != nil {
		t.Fatal(err)
	}
	given := []schemas.Attr{schemas.String("ip", "203.0.113.77"), schemas.String("email", "a@b.c"), schemas.Float64("lat", 52.51749), schemas.String("at", "52.517, -13.39"),
		schemas.Int64("card", 4711), schemas.String("other", "stays")}
	e := schemas.Event{UserID: "u-7", Message: "secret", Service: "s", Attrs: given}
	New(&topic, privacyKey).Apply(&e)
	// printf u-7 | openssl dgst -sha256 -hmac 0123456789abcdef | cut -c1-32
	const hashU7, hash4711 = "c061d17d0a9f81968e3975c82ac25a96", "d6f9c71fc9711c566dabe39ff39faefa"
	want := []schemas.Attr{schemas.String("ip", "203.0.113.0"), schemas.String("email", ""), schemas.Float64("lat", 52.5), schemas.String("at", "52.5,-13.5"), schemas.String("card", hash4711), schemas.String("other", "stays")}
	if diff := cmp.Diff(want, e.Attrs, cmp.AllowUnexported(schemas.Attr{})); diff != "" {
		t.Error(diff)
	}
	if e.UserID != hashU7 || e.Message != "" || e.Service != "s" {
		t.Errorf("%+v", e)
	}
	if given[0].Text() != "203.0.113.77" || len(given) != 6 {
		t.Error("the caller's attributes were changed")
	}
	// Without a key, what should be hashed is dropped.
	e = schemas.Event{UserID: "u-7", Attrs: []schemas.Attr{schemas.Int64("card", 4711)}}
	New(&topic, nil).Apply(&e)
	if e.UserID != "" || len(e.Attrs) != 1 || e.Attrs[0] != schemas.String("card", "") {
		t.Errorf("%+v", e)
	}
	if plain := schemas.NewTopic("app"); New(&plain, privacyKey) != nil {
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
		if got, ok := coarseText(in, schemas.DefaultGrid); got != want || ok != (want != "") {
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

// Names of towns, regions and countries stay under coarse_location, alone and as members; addresses, and what else an object has, do not.
func TestCoarseLocationKeepsNames(t *testing.T) {
	topic := privateTopic(schemas.Private{Field: "place", Rule: schemas.PrivacyCoarseLocation}, schemas.Private{Field: "geo.where", Rule: schemas.PrivacyCoarseLocation})
	given := []schemas.Attr{
		schemas.String("place", "Saint-Jean-d'Angély, Île de Ré (FR)"), schemas.String("Place.City", "Berlin"), schemas.String("place.region", "Berlin"),
		schemas.String("place.country", "DE"), schemas.Float64("place.lat", 52.51749), schemas.String("geo.where", "東京"), schemas.String("geo.city", "free"),
	}
	e := schemas.Event{Attrs: given}
	New(&topic, nil).Apply(&e)
	want := slices.Clone(given)
	want[4] = schemas.Float64("place.lat", 52.5)
	if diff := cmp.Diff(want, e.Attrs, cmp.AllowUnexported(schemas.Attr{})); diff != "" {
		t.Error(diff)
	}
	e = schemas.Event{Attrs: []schemas.Attr{
		schemas.String("place.street", "Unter den Linden"), schemas.String("place.zip", "10117"), schemas.String("place.city", "Unter den Linden 5"),
		schemas.String("place.owner", "Ada"), schemas.String("geo.where", "mail@example.com"),
	}}
	New(&topic, nil).Apply(&e)
	for i := range e.Attrs {
		if a := &e.Attrs[i]; a.Text() != "" && a.Text() != "0" && a.Text() != "10117" {
			t.Errorf("%s has %q", a.Key, a.Text())
		}
	}
	// In JSON that stays text, the same.
	got, ok := New(&topic, nil).Clean([]byte(`{"place":{"city":"Berlin","street":"Unter den Linden","lat":52.51749},"n":[{"place":"Berlin"}]}`))
	if want := `{"place":{"city":"Berlin","lat":52.5},"n":[{"place":"Berlin"}]}`; !ok || string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if text, _, err := Ruled(&topic, "place", "Berlin", nil); text != "Berlin" || err != nil {
		t.Errorf("a filter asks for %q, %v", text, err)
	}
}

// Whatever the value, a rule lets nothing of it through but what the rule says.
func FuzzPrivacyText(f *testing.F) {
	for _, s := range []string{"203.0.113.77", "2001:db8::1", "52.5,13.4", "a@b.c", "u-7", "[::1]:9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &Rules{key: privacyKey}
		for _, rule := range schemas.PrivacyRules {
			got, ok := r.text(schemas.Private{Rule: rule, Grid: schemas.DefaultGrid}, "", s)
			switch {
			case !ok && got != "":
				t.Fatalf("%s of %q: not ok and %q", rule, s, got)
			case rule == schemas.PrivacyDrop && ok:
				t.Fatalf("drop of %q: %q", s, got)
			case rule == schemas.PrivacyHash && s != "" && len(got) != schemas.HashDigits:
				t.Fatalf("hash of %q: %q", s, got)
			case rule == schemas.PrivacyTruncateIP && ok:
				if again, ok := truncateIP(got); !ok || again != got {
					t.Fatalf("%q became %q, and that %q", s, got, again)
				}
			}
		}
	})
}

func TestPrivacyIsValidated(t *testing.T) {
	for want, rules := range map[string][]schemas.Private{
		"rule \"mask\"":           {{Field: "ip", Rule: "mask"}},
		"field \"ts\" cannot":     {{Field: "ts", Rule: schemas.PrivacyDrop}},
		"\"level\" cannot":        {{Field: "level", Rule: schemas.PrivacyHash}},
		"twice":                   {{Field: "ip", Rule: schemas.PrivacyDrop}, {Field: "attributes.ip", Rule: schemas.PrivacyHash}},
		"which only":              {{Field: "ip", Rule: schemas.PrivacyHash, Grid: 1}},
		"grid of 91":              {{Field: "at", Rule: schemas.PrivacyCoarseLocation, Grid: 91}},
		"lane_by":                 {{Field: "user_id", Rule: schemas.PrivacyDrop}},
		"whose column is float64": {{Field: "lat", Rule: schemas.PrivacyHash}},
		"1 to 252 bytes":          {{Field: "attributes.", Rule: schemas.PrivacyDrop}},
		"the event's time":        {{Field: "@timestamp", Rule: schemas.PrivacyDrop}},
		"\"MSG\" twice":           {{Field: "message", Rule: schemas.PrivacyDrop}, {Field: "MSG", Rule: schemas.PrivacyDrop}},
	} {
		topic := privateTopic(rules...)
		if err := topic.Validate(); !errors.Is(err, schemas.ErrTopic) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", rules, err, want)
		}
	}
	live, changed := privateTopic(), privateTopic(schemas.Private{Field: "ip", Rule: schemas.PrivacyDrop})
	if got, err := live.Evolve(changed); err != nil || len(got.PII) != 1 || got.Version != live.Version+1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := CheckKey([]byte("short")); !errors.Is(err, schemas.ErrPrivacyKey) {
		t.Error(err)
	}
}
