package replay

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// A target's rule is applied once more where the source got it after its first events; a hash cannot be.
func TestRulesThatTheSourceGotLater(t *testing.T) {
	drop, hash := schemas.Private{Field: "email", Rule: schemas.PrivacyDrop}, schemas.Private{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}
	topic := func(rules ...schemas.Private) *schemas.Topic {
		topic := schemas.NewTopic("app")
		topic.PII = rules
		return &topic
	}
	since := func(p schemas.Private) schemas.Private { p.Since = 2; return p }
	for _, c := range []struct {
		what           string
		source, target *schemas.Topic
		again          int
		refused        bool
	}{
		{"both from the start", topic(drop, hash), topic(hash, drop), 0, false},
		{"the source has more", topic(drop, hash), topic(), 0, false},
		{"the source has not", topic(hash), topic(drop), 0, true},
		{"later in the target", topic(drop), topic(since(drop)), 0, false},
		{"later in the source", topic(since(drop), hash), topic(drop, hash), 1, false},
		{"a hash, later in the source", topic(since(hash)), topic(hash), 0, true},
		{"a hash, later in the source and nowhere else", topic(since(hash)), topic(), 0, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, err := lateRules(c.source, c.target)
			if (err != nil) != c.refused || err == nil && len(got.PII) != c.again {
				t.Errorf("%s: %+v, %v", c.what, got, err)
			}
		})
	}
}
