package deadletters

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// JSON was refused before the topic's privacy rules were applied to it: sent again,
// they are, and under no other key.
func TestReopenAppliesPrivacy(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic.PII = []schemas.Private{{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}, {Field: "attributes.email", Rule: schemas.PrivacyDrop}}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	l := letter{header: nats.Header{}, at: at, data: []byte(`{"message":"hi","user_id":"ada","email":"ada@example.org"}` + "\n" + `{"message":"ho","user_id":"bob"}`)}
	l.Seq = 9
	frames, err := reopen(&topic, &l, at.UnixNano(), []byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for i := range frames {
		var r frame.Reader
		if err := r.Open(frames[i].payload, &topic, frames[i].Schema); err != nil {
			t.Fatal(err)
		}
		for k := range r.Rows() {
			e := r.Event(k)
			events++
			if e.UserID == "" || e.UserID == "ada" || e.UserID == "bob" || len(e.Attrs) > 1 || len(e.Attrs) == 1 && e.Attrs[0].Text() != "" {
				t.Errorf("in clear: %+v", e)
			}
		}
	}
	if events != 2 {
		t.Errorf("%d events, want 2", events)
	}
	if _, err := reopen(&topic, &l, at.UnixNano(), nil); !errors.Is(err, schemas.ErrPrivacyKey) || !strings.Contains(err.Error(), "pii_key") {
		t.Errorf("without the key: %v", err)
	}
}

// A dead letter to which the rules were applied when it was kept
// is sent again with them, and not with hashes of hashes.
func TestRulesAreAppliedOnce(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic.PII = []schemas.Private{{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}}
	key := []byte("0123456789abcdef")
	clean, ok := privacy.New(&topic, key).Clean([]byte(`{"user_id":"ada","email":"ada@example.org"}`))
	if !ok {
		t.Fatal("not cleaned")
	}
	marks := topic.RuleMarks()
	topic.PII = append(topic.PII, schemas.Private{Field: "email", Rule: schemas.PrivacyDrop}) // since then
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	l := letter{header: nats.Header{schemas.HeaderRules: []string{marks}}, at: at, data: clean}
	frames, err := reopen(&topic, &l, at.UnixNano(), nil)
	if err != nil || len(frames) != 1 {
		t.Fatal(frames, err)
	}
	var r frame.Reader
	if err := r.Open(frames[0].payload, &topic, frames[0].Schema); err != nil {
		t.Fatal(err)
	}
	want, _, _ := privacy.Ruled(&topic, schemas.ColUserID, "ada", key)
	if e := r.Event(0); e.UserID != want || len(e.Attrs) != 1 || e.Attrs[0] != schemas.String("email", "") {
		t.Errorf("%+v, want %s", e, want)
	}
}

// A letter is sent again under one name however often, and no letter that has its sequence
// later shares it.
func TestProducerOfALetter(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	name, seq := producerOf("app", 70, at, 0)
	if again, s := producerOf("app", 70, at, 0); again != name || s != seq {
		t.Errorf("%s %d, and again %s %d", name, seq, again, s)
	}
	if later, _ := producerOf("app", 70, at.Add(time.Hour), 0); later == name {
		t.Error("another letter under the same sequence has the same name")
	}
}
