package deadletters

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// What was refused because it came by another lane than its identity has, as JSON or as a frame, is sent again by its own.
func TestWrongLanesAreSetRight(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopicOf(kinds.Audit, "audit")
	topic.Lanes = 16
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var lines []string
	b := frame.NewBuilder(&topic)
	for i := range 40 {
		e := schemas.Event{Type: "request", Attrs: []schemas.Attr{schemas.String("scope", "s"), schemas.String("request_id", fmt.Sprint("r", i))}}
		b.Append(&e, at.UnixNano(), schemas.NewID(at.UnixNano()))
		lines = append(lines, fmt.Sprintf(`{"type":"request","scope":"s","request_id":"r%d"}`, i))
	}
	f, payload := b.Encode()
	f.Producer, f.Seq = "p", 1
	whole := letter{header: nats.Header{}, at: at, data: slices.Clone(payload), subject: schemas.EventsSubject("audit", 202603, 3)}
	f.SetHeaders(whole.header)
	for name, l := range map[string]*letter{"JSON": {header: nats.Header{}, at: at, data: []byte(strings.Join(lines, "\n"))}, "a frame": &whole} {
		t.Run(name, func(t *testing.T) {
			frames, err := reopen(&topic, l, at.UnixNano(), nil)
			if err != nil {
				t.Fatal(err)
			}
			events, lanes := 0, map[int]bool{}
			for i := range frames {
				var r frame.Reader
				if err := r.Open(frames[i].payload, &topic, frames[i].Schema); err != nil {
					t.Fatal(err)
				}
				if err := r.Check(frames[i].Frame, frames[i].month, frames[i].lane, at.UnixNano()); err != nil {
					t.Errorf("%s is refused again: %v", name, err)
				}
				events, lanes[frames[i].lane] = events+r.Rows(), true
			}
			if events != 40 || len(lanes) < 8 {
				t.Errorf("%s: %d events in %d lanes", name, events, len(lanes))
			}
		})
	}
}
