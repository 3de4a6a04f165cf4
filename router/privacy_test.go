package router

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Bare JSON gets the topic's privacy rules from the router; without a key, what
// should be hashed is dropped and never passed in clear.
func TestEvaluatorAppliesPrivacyRules(t *testing.T) {
	topic := testTopic
	topic.PII = []schemas.Private{{Field: "user_id", Rule: schemas.PrivacyHash}, {Field: "card", Rule: schemas.PrivacyHash}, {Field: "ip", Rule: schemas.PrivacyTruncateIP}}
	at := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	m := message{
		subject: schemas.EventsSubject(topic.Name, 202611, 0), seq: 1, stored: at,
		data: []byte(fmt.Sprintf(`{"ts":%q,"user_id":"u-7","card":4711,"ip":"203.0.113.77","message":"hi"}`, at.Format(time.RFC3339))),
	}
	for _, key := range []string{"", "0123456789abcdef"} {
		j := evaluator{topic: &topic, key: []byte(key)}
		got := j.message(&m, nil)
		if len(got.frames) != 1 || len(got.dead) != 0 {
			t.Fatalf("%+v", got)
		}
		var r frame.Reader
		if err := r.Open(got.frames[0].payload, &topic, got.frames[0].Schema); err != nil {
			t.Fatal(err)
		}
		ev := r.Event(0)
		attrs := map[string]string{}
		for i := range ev.Attrs {
			attrs[ev.Attrs[i].Key] = ev.Attrs[i].Text()
		}
		digits := 0
		if key != "" {
			digits = schemas.HashDigits
		}
		if len(ev.UserID) != digits || len(attrs["card"]) != digits || attrs["ip"] != "203.0.113.0" || ev.Message != "hi" {
			t.Errorf("key %q: %+v, %v", key, ev, attrs)
		}
	}
}
