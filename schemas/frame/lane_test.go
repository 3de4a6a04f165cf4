package frame

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// identities are topics whose events have an identity, with 16 lanes: every kind's, and once_by of columns of each type.
func identities(t testing.TB) []schemas.Topic {
	t.Helper()
	topics := []schemas.Topic{{Name: "meter", Kind: kinds.Meter}, {Name: "metric", Kind: kinds.Metric}, {Name: "audit", Kind: kinds.Audit},
		{Name: "base", OnceBy: []string{"ts", "id", "level", "service", "type", "user_id", "trace_id", "span_id", "message"}}}
	for _, of := range schemas.FieldTypes {
		topics = append(topics, schemas.Topic{Name: "of_" + string(of), OnceBy: []string{"x"}, Fields: []schemas.Field{{Name: "x", Type: of, From: "x.y"}, {Name: "other", Type: of}}})
	}
	for i := range topics {
		topics[i].Lanes = 16
		var err error
		if topics[i], err = topics[i].Declared(); err != nil {
			t.Fatal(err)
		}
	}
	return topics
}

// anEvent draws an event whose attributes come by the names of fields and by others, more than once, and as values of every kind.
func anEvent(t *rapid.T, topic *schemas.Topic) schemas.Event {
	text := rapid.SampledFrom([]string{"", "a", "b", "5", "5.50", "true", "2026-11-20T10:00:00Z", "{}", "\xff"})
	e := schemas.Event{Level: text.Draw(t, "level"), Service: text.Draw(t, "service"), Type: text.Draw(t, "type"), UserID: text.Draw(t, "user"),
		TraceID: text.Draw(t, "trace"), SpanID: text.Draw(t, "span"), Message: text.Draw(t, "message"), ID: schemas.NewID(rapid.Int64Range(1, 1e18).Draw(t, "id"))}
	names := []string{"x.y", "host", "region"}
	for _, f := range topic.Fields {
		names = append(names, f.Name)
	}
	for range rapid.IntRange(0, 6).Draw(t, "attributes") {
		name := rapid.SampledFrom(names).Draw(t, "name")
		if topic.Spec().Sorted && slices.ContainsFunc(e.Attrs, func(a schemas.Attr) bool { return a.Key == name }) {
			continue // refused there
		}
		var a schemas.Attr
		switch rapid.IntRange(0, 4).Draw(t, "of") {
		case 0:
			a = schemas.Int64(name, rapid.SampledFrom([]int64{0, 5, -7}).Draw(t, "number"))
		case 1:
			a = schemas.Float64(name, rapid.SampledFrom([]float64{0, 5, 5.5, math.Copysign(0, -1)}).Draw(t, "number"))
		case 2:
			a = schemas.Bool(name, rapid.Bool().Draw(t, "truth"))
		case 3:
			a = schemas.Time(name, time.Unix(rapid.SampledFrom([]int64{0, 1, 1.7e9}).Draw(t, "time"), 0))
		default:
			a = schemas.String(name, text.Draw(t, "text"))
		}
		e.Attrs = append(e.Attrs, a)
	}
	return e
}

// The lane of an event is that of the row which is read back of it, and a frame is refused by every lane but its own.
func TestLaneOfARowIsItsEvents(t *testing.T) {
	t.Parallel()
	for _, topic := range identities(t) {
		t.Run(topic.Name, func(t *testing.T) {
			t.Parallel()
			saw := map[int]bool{}
			rapid.Check(t, func(t *rapid.T) {
				e, ts := anEvent(t, &topic), rapid.Int64Range(1, 1e18).Draw(t, "ts")
				b := NewBuilder(&topic)
				b.Append(&e, ts, e.ID)
				lane := schemas.LaneOf(&topic, &e, ts, "this producer")
				saw[lane] = true
				_, payload := b.Encode()
				var r Reader
				if err := r.Open(payload, &topic, topic.Version); err != nil {
					t.Fatal(err)
				}
				back := r.Event(0)
				if got := schemas.LaneOf(&topic, &back, r.Ts(0), "another"); got != lane {
					t.Fatalf("lane %d, and of its row %+v lane %d", lane, back, got)
				}
				for l := range topic.Lanes {
					if err := r.checkLane(l); (err == nil) != (l == lane) || err != nil && !errors.Is(err, schemas.ErrLane) {
						t.Fatalf("of lane %d, by lane %d: %v", lane, l, err)
					}
				}
			})
			if len(saw) < 2 && topic.Name != "of_"+string(schemas.TypeBool) { // whose two values have one by chance
				t.Errorf("all events have lanes %v", saw)
			}
		})
	}
}

// One of the rows of another lane is enough for a frame to be refused; a topic without an identity asks nothing of its lanes.
func TestLaneOfEveryRow(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopicOf(kinds.Audit, "audit")
	topic.Lanes = 16
	log := schemas.NewTopic("app")
	log.Lanes = 16
	of := func(topic *schemas.Topic, n int) error {
		b := NewBuilder(topic)
		for i := range n {
			e := schemas.Event{Type: "request", Attrs: []schemas.Attr{schemas.String("scope", "s"), schemas.String("request_id", fmt.Sprint("r", i/9))}}
			b.Append(&e, 1, schemas.NewID(1))
		}
		f, payload := b.Encode()
		var r Reader
		if err := r.Open(payload, topic, 1); err != nil {
			t.Fatal(err)
		}
		first := r.Event(0)
		return r.Check(f, 197001, schemas.LaneOf(topic, &first, 1, ""), 1)
	}
	if err := of(&topic, 9); err != nil {
		t.Errorf("nine events of one request: %v", err)
	}
	if err := of(&topic, 10); !errors.Is(err, schemas.ErrLane) || schemas.Reason(err) != "wrong-lane" {
		t.Errorf("and one of another: %v", err)
	}
	if err := of(&log, 10); err != nil {
		t.Errorf("a log: %v", err)
	}
}
