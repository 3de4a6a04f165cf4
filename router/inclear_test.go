package router

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Whatever is wrong with bare JSON, what a rule covers is in no
// frame and in no dead letter; what cannot be read is withheld.
func TestNothingInClearFromTheRouter(t *testing.T) {
	topic := testTopic
	topic.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}, {Field: "user_id", Rule: schemas.PrivacyHash}, {Field: "users.card", Rule: schemas.PrivacyTruncateIP}}
	member := rapid.SampledFrom([]string{
		`"email":"CLEAR"`, `"Email":{"home":["CLEAR"]}`, `"user_id":"CLEAR"`, `"users":[{"card":"CLEAR","open":1}]`, `"attributes":{"email":"CLEAR"}`,
		`"email":"x","email":"CLEAR"`, `"open":"yes"`, `"message":"hi"`, `"ts":"2026-11-03T12:00:00Z"`, `"ts":"no time"`, `"ts":"2026-10-03T12:00:00Z"`,
		`"open":"` + strings.Repeat("x", schemas.MaxEventBytes) + `"`,
	})
	rapid.Check(t, func(t *rapid.T) {
		var data []byte
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			line := "{" + strings.Join(rapid.SliceOfN(member, 1, 5).Draw(t, "members"), ",") + "}"
			switch rapid.IntRange(0, 8).Draw(t, "harm") {
			case 0:
				line = line[:len(line)-1]
			case 1:
				line = "[" + line + "]"
			case 2:
				line = "email=CLEAR"
			case 3:
				line = strings.ReplaceAll(line, ",", ",\n")
			}
			data = append(data, line+"\n"...)
		}
		m := message{subject: schemas.EventsSubject(topic.Name, 202611, 0), seq: 1, stored: noon, data: data}
		switch rapid.IntRange(0, 5).Draw(t, "message") {
		case 0:
			m.subject = rapid.SampledFrom([]string{"events.app.2026-13.0", "events.app.2026-11.99"}).Draw(t, "subject")
		case 1:
			m.header = nats.Header{schemas.HeaderRows: []string{"1"}}
		}
		j := evaluator{topic: &topic, key: []byte(rapid.SampledFrom([]string{"", "0123456789abcdef"}).Draw(t, "key"))}
		got := j.message(&m, nil)
		if len(got.frames)+len(got.dead) == 0 {
			t.Fatalf("nothing came of %s", data)
		}
		for _, f := range got.frames {
			var r frame.Reader
			if err := r.Open(f.payload, &topic, f.Schema); err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(r.Raw(), []byte("CLEAR")) {
				t.Fatalf("a frame has it of %s", data)
			}
		}
		for _, d := range got.dead {
			if d.rules != topic.RuleMarks() || bytes.Contains(d.payload, []byte("CLEAR")) || strings.Contains(d.err.Error(), "CLEAR") {
				t.Fatalf("a dead letter of %s:\n%s\n%v", data, d.payload, d.err)
			}
		}
	})
	// What can be read stays readable; a frame that is damaged stays whole.
	j := evaluator{topic: &topic, key: []byte("0123456789abcdef")}
	got := j.message(&message{subject: "events.app.2026-11.0", stored: noon, data: []byte(`{"ts":"no time", "email":"CLEAR" ,"open":[1, 2]}`)}, nil)
	if want := `{"ts":"no time","open":[1, 2]}`; len(got.dead) != 1 || string(got.dead[0].payload) != want {
		t.Errorf("%+v, want %s", got, want)
	}
	m := frameMessage(t, noon, 1, func(m *message) { m.data[len(m.data)/2] ^= 4 })
	if got := j.message(&m, nil); len(got.dead) != 1 || !bytes.Equal(got.dead[0].payload, m.data) {
		t.Errorf("a damaged frame was changed: %+v", got)
	}
	b := newBatch()
	b.dead("dead.app", &m, deadLetter{payload: []byte("x"), rules: topic.RuleMarks(), err: fmt.Errorf("why")}, "why")
	if left := topic.RulesLeft(b.msgs[0].Header.Get(schemas.HeaderRules)); len(left.PII) != 0 || len(topic.PII) != 3 {
		t.Errorf("rules to apply once more: %v", left.PII)
	}
}

// What is published under no lane is kept by the rules of the topic that its
// subject names.
func TestUnroutableInClear(t *testing.T) {
	topic := testTopic
	topic.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}}
	for _, subject := range []string{"events.app.2026-11", "events.app", "events.app.2026-11.0.1", "events.app.2026-11.99", "events.app.x.y", "events.app.2026-11."} {
		s, ok := unroutableOf(subject, map[string]*schemas.Topic{topic.Name: &topic})
		if !ok || s.topic == nil {
			t.Errorf("%s: topic %v, a stray: %v", subject, s.topic, ok)
			continue
		}
		for _, line := range []string{`{"email":"CLEAR","open":"yes"}`, "email=CLEAR"} {
			j := evaluator{topic: s.topic}
			got := j.message(&message{subject: subject, seq: 1, stored: noon, data: []byte(line)}, nil)
			if len(got.dead) != 1 || len(got.frames) != 0 || bytes.Contains(got.dead[0].payload, []byte("CLEAR")) || len(got.dead[0].payload) == 0 {
				t.Errorf("%s: %+v", subject, got)
			}
		}
	}
	if s, ok := unroutableOf("events.other.2026-11", map[string]*schemas.Topic{topic.Name: &topic}); !ok || s.topic != nil {
		t.Errorf("an undeclared topic: %+v", s)
	}
}
