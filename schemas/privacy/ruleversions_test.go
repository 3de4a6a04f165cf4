package privacy

import (
	"github.com/almanac-events/almanac/schemas"
	"slices"
	"testing"
)

// A rule knows the version that brought it, keeps it through later changes, and says of a frame which rules it lacks.
func TestRulesHaveVersions(t *testing.T) {
	email, user, ip := schemas.Private{Field: "email", Rule: schemas.PrivacyDrop}, schemas.Private{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}, schemas.Private{Field: "ip", Rule: schemas.PrivacyTruncateIP}
	topic := privateTopic(user)
	change := func(version int, rules ...schemas.Private) {
		t.Helper()
		want := topic
		want.PII, want.Version, want.Lifted = rules, 0, nil // as a person says it
		next, err := topic.Evolve(want)
		if err != nil || next.Version != version || len(next.PII) != len(rules) {
			t.Fatalf("%+v, %v; want version %d", next, err, version)
		}
		topic = next
	}
	lacks := func(v int, fields ...string) {
		t.Helper()
		var got []string
		if left := topic.RulesAfter(v); left != nil {
			for _, p := range left.PII {
				if p.Rule != schemas.PrivacyApplied {
					got = append(got, p.Field)
				}
			}
		}
		if !slices.Equal(got, fields) {
			t.Errorf("a frame of version %d lacks %v, want %v", v, got, fields)
		}
	}
	change(1, user)
	lacks(1)
	change(2, user, email)
	lacks(1, "email")
	lacks(2)
	change(3, ip, email, user)
	lacks(1, "ip", "email")
	lacks(2, "ip")
	change(4, ip, email) // the hash is lifted
	lacks(3)
	change(5, ip, email, user)
	lacks(4, schemas.ColUserID)
	lacks(3) // a frame from before was hashed
	lacks(2, "ip")
	change(6, ip, email, user, schemas.Private{Field: "place", Rule: schemas.PrivacyCoarseLocation})
	change(7, ip, email, user, schemas.Private{Field: "place", Rule: schemas.PrivacyCoarseLocation, Grid: 1})
	lacks(6, "place")

	key := []byte("0123456789abcdef")
	e := schemas.Event{UserID: "hashed", Attrs: []schemas.Attr{schemas.String("email", "a@b"), schemas.String("place", "52.51749,13.39")}}
	New(topic.RulesAfter(3), key).Apply(&e)
	if e.UserID != "hashed" || e.Attrs[0] != schemas.String("email", "a@b") || e.Attrs[1].Text() != "53,13" {
		t.Errorf("%+v", e)
	}
	for range 2 * schemas.MaxLifted {
		change(topic.Version+1, ip)
		change(topic.Version+1, ip, user)
	}
	if len(topic.Lifted) != schemas.MaxLifted || topic.Lifted[schemas.MaxLifted-1].Until != topic.Version-1 {
		t.Errorf("%d lifted rules, the last until %d of %d", len(topic.Lifted), topic.Lifted[len(topic.Lifted)-1].Until, topic.Version)
	}
}
