package deadletters

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// What was refused because one id came too often, as JSON or as a frame, and a frame with the id of zeros, are sent again so
// that a router takes them.
func TestOneIDTooOftenIsSetRight(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopicOf(kinds.Audit, "audit")
	topic.Lanes = 1
	const n = 40
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	framed := func(id schemas.ID) *letter {
		b := frame.NewBuilder(&topic)
		for i := range n {
			e := schemas.Event{Type: "request", Attrs: []schemas.Attr{schemas.String("scope", "s"), schemas.String("request_id", fmt.Sprint("r", i))}}
			b.Append(&e, at.UnixNano(), id)
		}
		f, payload := b.Encode()
		f.Producer, f.Seq = "p", 1
		l := letter{header: nats.Header{}, at: at, data: bytes.Clone(payload), subject: schemas.EventsSubject("audit", 202603, 0)}
		f.SetHeaders(l.header)
		return &l
	}
	id := schemas.DerivedID(1, 2, 3)
	line := fmt.Sprintf(`{"id":"%s","ts":"2026-03-04T05:06:07Z","type":"request","scope":"s","request_id":"r"}`+"\n", id)
	for name, l := range map[string]*letter{
		"JSON":             {header: nats.Header{}, at: at, data: []byte(strings.Repeat(line, n))},
		"a frame":          framed(id),
		"a frame of zeros": framed(schemas.ID{}),
	} {
		t.Run(name, func(t *testing.T) {
			var r frame.Reader
			if f, err := schemas.ParseFrame(l.header); err == nil {
				if err := r.Open(l.data, &topic, 1); err != nil {
					t.Fatal(err)
				}
				if err := r.Check(f, 202603, 0, at.UnixNano()); !errors.Is(err, schemas.ErrSameID) && !errors.Is(err, schemas.ErrID) {
					t.Fatalf("the letter is of a frame that was refused: %v", err)
				}
			}
			frames, err := reopen(&topic, l, at.UnixNano(), nil)
			if err != nil {
				t.Fatal(err)
			}
			events := 0
			for i := range frames {
				if err := r.Open(frames[i].payload, &topic, frames[i].Schema); err != nil {
					t.Fatal(err)
				}
				if err := r.Check(frames[i].Frame, frames[i].month, frames[i].lane, at.UnixNano()); err != nil {
					t.Errorf("it is refused again: %v", err)
				}
				events += r.Rows()
			}
			if events != n {
				t.Errorf("%d events of %d", events, n)
			}
		})
	}
}
