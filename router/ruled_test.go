package router

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// What the router keeps of a frame that is older than a rule of its topic, stored or refused, is without what the rule
// takes, and decided the same each time. What cannot be opened is withheld.
func TestOlderFramesAreRuled(t *testing.T) {
	t.Parallel()
	old := schemas.NewTopic("app")
	want := old
	want.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}, {Field: schemas.ColUserID, Rule: schemas.PrivacyHash}}
	topic, err := old.Evolve(want)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	made := func(under *schemas.Topic) *message {
		b := frame.NewBuilder(under)
		b.Append(&schemas.Event{UserID: "CLEAR", Attrs: []schemas.Attr{schemas.String("email", "CLEAR"), schemas.String("k", "v")}}, at.UnixNano(), schemas.NewID(at.UnixNano()))
		f, payload := b.Encode()
		f.Producer, f.Seq = "p", 5
		msg := schemas.EventsFrame("app", schemas.MonthOf(at.UnixNano()), 0, f, bytes.Clone(payload))
		return &message{subject: msg.Subject, header: msg.Header, data: msg.Data, seq: 9, stored: at}
	}
	key := []byte("0123456789abcdef")
	j := evaluator{topic: &topic, key: key}
	var r frame.Reader
	clean := func(payload []byte, schema int) {
		t.Helper()
		if err := r.Open(payload, &topic, schema); err != nil {
			t.Fatal(err)
		}
		hash, _, _ := privacy.Ruled(&topic, schemas.ColUserID, "CLEAR", key)
		if e := r.Event(0); bytes.Contains(r.Raw(), []byte("CLEAR")) || e.UserID != hash || len(e.Attrs) != 2 {
			t.Errorf("%+v", e)
		}
	}
	m := made(&old)
	out, again := j.message(m, nil), j.message(m, nil)
	if len(out.frames) != 1 || len(out.dead) != 0 || !bytes.Equal(out.frames[0].payload, again.frames[0].payload) {
		t.Fatalf("%+v", out)
	}
	f := out.frames[0]
	if f.Producer != "p" || f.Seq != 5 || f.Schema != topic.Version {
		t.Errorf("%+v", f.Frame)
	}
	clean(f.payload, f.Schema)
	if r.IDSum() != f.ids {
		t.Error("its ids add up to something else")
	}

	// One of the newest version is stored as it came: its producer applied the rules.
	n := made(&topic)
	if out := j.message(n, nil); len(out.frames) != 1 || !bytes.Equal(out.frames[0].payload, n.data) {
		t.Errorf("%+v", out)
	}

	refused := func(m *message) *nats.Msg {
		t.Helper()
		out := j.message(m, nil)
		if len(out.dead) != 1 || len(out.frames) != 0 {
			t.Fatalf("%+v", out)
		}
		b := newBatch()
		b.dead("dead.app", m, out.dead[0], "reason")
		return b.msgs[0]
	}
	m = made(&old)
	m.header.Set(schemas.HeaderRows, "2") // a lie
	letter := refused(m)
	schema, _ := strconv.Atoi(letter.Header.Get(schemas.HeaderSchema))
	if clean(letter.Data, schema); letter.Header.Get(schemas.HeaderProducer) != "p" {
		t.Errorf("%v", letter.Header)
	}
	for what, spoil := range map[string]func(m *message){
		"flipped":           func(m *message) { m.data[len(m.data)-1] ^= 1 },
		"without a version": func(m *message) { m.header.Del(schemas.HeaderSchema); m.data[len(m.data)-1] ^= 1 },
	} {
		t.Run(what, func(t *testing.T) {
			m := made(&old)
			if spoil(m); string(refused(m).Data) != schemas.WithheldFrame(len(m.data)) {
				t.Errorf("%s: it is kept", what)
			}
		})
	}
	m = made(&topic)
	if m.data[len(m.data)-1] ^= 1; !bytes.Equal(refused(m).Data, m.data) {
		t.Error("a damaged frame that had all rules applied is not kept whole")
	}
}

// The router speaks for the topics as they were when the oldest of its lanes and sweeps read them.
func TestOldestReading(t *testing.T) {
	t.Parallel()
	var r readings
	if got := r.oldest(5); got != 5 {
		t.Error(got)
	}
	r.hold("a", 3)
	r.hold("b", 4)
	if got := r.oldest(5); got != 3 {
		t.Error(got)
	}
	r.hold("b", 5)
	r.end("a")
	if got := r.oldest(5); got != 5 {
		t.Error(got)
	}
}
