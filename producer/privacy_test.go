package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// What a rule names never enters a frame in clear, by any door; its lane is that
// of what does enter.
func TestPrivacyRulesAreApplied(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app", schemas.Field{Name: "lat", Type: schemas.TypeFloat64})
	topic.PII = []schemas.Private{
		{Field: "user_id", Rule: schemas.PrivacyHash}, {Field: "ip", Rule: schemas.PrivacyTruncateIP},
		{Field: "email", Rule: schemas.PrivacyDrop}, {Field: "lat", Rule: schemas.PrivacyCoarseLocation},
	}
	e := newEnv(t, topic)
	if _, err := Connect(e.ctx(), e.srv.ClientURL(), Config{Topic: "app"}); !errors.Is(err, ErrConfig) || !errors.Is(err, schemas.ErrPrivacyKey) {
		t.Fatalf("without a key: %v", err)
	}
	if _, err := Connect(e.ctx(), e.srv.ClientURL(), Config{Topic: "app", PrivacyKey: []byte("short")}); !errors.Is(err, ErrConfig) {
		t.Fatalf("with a short key: %v", err)
	}
	p := e.connect(Config{Topic: "app", PrivacyKey: []byte("0123456789abcdef")})
	attrs := []Attr{schemas.String("ip", "203.0.113.77"), schemas.String("email", "a@example.org"), schemas.Float64("lat", 52.51749)}
	p.Log(Event{UserID: "u-7", Message: "log", Attrs: attrs})
	e.must(p.Publish(e.ctx(), Event{UserID: "u-7", Message: "publish", Attrs: attrs}))
	e.must(p.Flush(e.ctx()))
	lanes := map[int]bool{}
	n := 0
	for _, f := range e.frames(&topic) { // it checks the lane, too
		lanes[f.lane] = true
		for _, ev := range f.events {
			n++
			got := map[string]string{}
			for i := range ev.Attrs {
				got[ev.Attrs[i].Key] = ev.Attrs[i].Text()
			}
			if len(ev.UserID) != schemas.HashDigits || got["ip"] != "203.0.113.0" || got["email"] != "" || got["lat"] != "52.5" {
				t.Errorf("%+v, %v", ev, got)
			}
		}
	}
	if n != 2 || len(lanes) != 1 {
		t.Errorf("%d events in %d lanes", n, len(lanes))
	}
	if text := attrs[0].Text(); text != "203.0.113.77" {
		t.Errorf("the caller's attribute became %q", text)
	}
}

// The spool holds what frames hold: nothing in clear.
func TestPrivacyInTheSpool(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic.PII = []schemas.Private{{Field: "user_id", Rule: schemas.PrivacyHash}}
	e := newEnv(t, topic)
	cfg := spooling(t.TempDir())
	cfg.PrivacyKey = []byte("0123456789abcdef")
	e.must(e.connect(cfg).Close(e.ctx()))
	e.stopServer()
	p := e.connect(cfg) // from the descriptor the spool kept
	p.Log(Event{UserID: "in-clear", Attrs: []Attr{String("attributes.user_id#2", "in-clear")}})
	eventually(t, "on disk", func() bool { return p.Stats().Spool.Events == 1 })
	r, err := p.spool.Next()
	e.must(err)
	if strings.Contains(string(r.Payload), "in-clear") {
		t.Error("the spool has it in clear")
	}
	gone, cancel := context.WithCancel(e.ctx())
	cancel()
	if err := p.Close(gone); !errors.Is(err, ErrSpooled) {
		t.Error(err)
	}
	e.startServer()
}

// Names derived from a rule's, and a log line that should have been
// JSON, are not in clear in what goes out.
func TestNothingInClearFromTheProducer(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}, {Field: "user_id", Rule: schemas.PrivacyHash}, {Field: "users.card", Rule: schemas.PrivacyHash}}
	e := newEnv(t, topic)
	p := e.connect(Config{Topic: "app", PrivacyKey: []byte("0123456789abcdef")})
	p.Log(Event{UserID: "CLEAR", Attrs: []Attr{String("email#2", "CLEAR"), String("Email.home", "CLEAR"), String("users", `[{"card":"CLEAR"}]`)}})
	w := p.Writer()
	for _, line := range []string{`{"level":"info","email":"CLEAR","email":"CLEAR","user_id":{"name":"CLEAR"}}`, `{"email":"CLEAR"`} {
		if _, err := w.Write([]byte(line)); err != nil {
			t.Error(err)
		}
	}
	e.must(p.Flush(e.ctx()))
	n := 0
	for _, f := range e.frames(&topic) {
		for _, ev := range f.events {
			n++
			if text := fmt.Sprintf("%+v", ev); strings.Contains(text, "CLEAR") {
				t.Error(text)
			}
		}
	}
	if n != 3 {
		t.Errorf("%d events", n)
	}
}
