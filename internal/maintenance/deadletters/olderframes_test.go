package deadletters

import (
	"bytes"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// A letter that holds a frame from before a rule of its topic is sent again under the rule, whether or not its headers
// can be believed, and not without the key of a hash.
func TestFramesOlderThanARule(t *testing.T) {
	t.Parallel()
	old := schemas.NewTopic("app")
	want := old
	want.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}, {Field: schemas.ColUserID, Rule: schemas.PrivacyHash}}
	topic, err := old.Evolve(want)
	if err != nil {
		t.Fatal(err)
	}
	at, key := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), []byte("0123456789abcdef")
	b := frame.NewBuilder(&old)
	b.Append(&schemas.Event{UserID: "CLEAR", Attrs: []schemas.Attr{schemas.String("email", "CLEAR")}}, at.UnixNano(), schemas.NewID(at.UnixNano()))
	f, payload := b.Encode()
	f.Producer, f.Seq = "p", 1
	for name, spoil := range map[string]func(l *letter){
		"true headers":  func(*letter) {},
		"no version":    func(l *letter) { l.header.Del(schemas.HeaderSchema) },
		"wrong version": func(l *letter) { l.header.Set(schemas.HeaderSchema, "9") },
	} {
		t.Run(name, func(t *testing.T) {
			msg := schemas.EventsFrame("app", schemas.MonthOf(at.UnixNano()), 0, f, payload)
			l := letter{header: msg.Header, at: at, data: msg.Data, subject: msg.Subject}
			spoil(&l)
			if _, err := reopen(&topic, &l, at.UnixNano(), nil); err == nil {
				t.Errorf("%s: it is sent without the key", name)
			}
			frames, err := reopen(&topic, &l, at.UnixNano(), key)
			if err != nil || len(frames) != 1 || frames[0].Schema != topic.Version {
				t.Fatalf("%s: %+v, %v", name, frames, err)
			}
			var r frame.Reader
			if err := r.Open(frames[0].payload, &topic, frames[0].Schema); err != nil {
				t.Fatal(err)
			}
			hash, _, _ := privacy.Ruled(&topic, schemas.ColUserID, "CLEAR", key)
			if bytes.Contains(r.Raw(), []byte("CLEAR")) || r.Event(0).UserID != hash {
				t.Errorf("%s: %+v", name, r.Event(0))
			}
		})
	}
}
