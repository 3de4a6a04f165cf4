package router

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// idOf is the n-th of some ids.
func idOf(n int) schemas.ID { return schemas.DerivedID(noon.UnixNano(), uint64(n), 3) }

func meterOf(lanes int) schemas.Topic {
	t := schemas.NewTopicOf(kinds.Meter, "usage")
	t.Lanes = lanes
	return t
}

// diffsMessage is the frame of a producer that knows nothing of ids.
func diffsMessage(t *testing.T, topic *schemas.Topic, seq uint64, ids ...schemas.ID) *message {
	t.Helper()
	b := frame.NewBuilder(topic)
	for i, id := range ids {
		e := schemas.Event{Type: "bytes", Attrs: []schemas.Attr{schemas.String("space", "s"), schemas.String("cause", "c"), schemas.Int64("delta", int64(i))}}
		b.Append(&e, noon.UnixNano(), id)
	}
	f, payload := b.Encode()
	f.Producer, f.Seq = "p", seq
	m := message{subject: schemas.EventsSubject(topic.Name, schemas.MonthOf(noon.UnixNano()), 0), header: nats.Header{}, data: bytes.Clone(payload), seq: 8, stored: noon}
	f.SetHeaders(m.header)
	return &m
}

// once fails if a frame has an id twice, and returns how many events the frames have.
func once(t *testing.T, topic *schemas.Topic, frames []routedFrame) (events int) {
	t.Helper()
	var r frame.Reader
	for i, f := range frames {
		if err := r.Open(f.payload, topic, f.Schema); err != nil {
			t.Fatal(err)
		}
		if f.ids != r.IDSum() || f.Rows != r.Rows() {
			t.Errorf("frame %d says %d rows, ids %d", i, f.Rows, f.ids)
		}
		seen := map[schemas.ID]bool{}
		for k := range r.Rows() {
			if seen[r.ID(k)] {
				t.Errorf("frame %d has the id %s twice", i, r.ID(k))
			}
			seen[r.ID(k)] = true
		}
		events += r.Rows()
	}
	return events
}

// A frame of a topic that has events once is stored as frames that have each id once, and is refused
// when those were too many.
func TestFramesWithOneIDTwice(t *testing.T) {
	t.Parallel()
	topic := meterOf(1)
	log := schemas.NewTopic("usage", topic.Fields...)
	many := func(n int, id schemas.ID) (ids []schemas.ID) {
		for range n {
			ids = append(ids, id)
		}
		return ids
	}
	var each []schemas.ID // as a file in which each line is there twice
	for n := range 500 {
		each = append(each, idOf(n), idOf(n))
	}
	for name, c := range map[string]struct {
		topic  *schemas.Topic
		ids    []schemas.ID
		frames int
		reason string
	}{
		"ids that differ":      {&topic, []schemas.ID{idOf(1), idOf(2), idOf(3)}, 1, ""},
		"one twice":            {&topic, []schemas.ID{idOf(1), idOf(1)}, 2, ""},
		"one twice of several": {&topic, []schemas.ID{idOf(1), idOf(2), idOf(1), idOf(3)}, 2, ""},
		"each twice":           {&topic, each, 2, ""},
		"as often as may be":   {&topic, many(schemas.MaxSameIDs, idOf(1)), schemas.MaxSameIDs, ""},
		"too often":            {&topic, many(schemas.MaxSameIDs+1, idOf(1)), 0, "same-id"},
		"zeros":                {&topic, []schemas.ID{idOf(1), {}}, 0, "bad-id"},
		"of a log":             {&log, many(schemas.MaxSameIDs+1, idOf(1)), 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, m := evaluator{topic: c.topic}, diffsMessage(t, c.topic, 1, c.ids...)
			got, again := j.message(m, nil), j.message(m, nil)
			if c.reason != "" {
				if len(got.frames) != 0 || len(got.dead) != 1 || schemas.Reason(got.dead[0].err) != c.reason || got.dead[0].events != len(c.ids) || got.refused == nil {
					t.Fatalf("%d frames, dead letters %+v", len(got.frames), got.dead)
				}
				return
			}
			if len(got.frames) != c.frames || len(got.dead) != 0 || len(again.frames) != c.frames {
				t.Fatalf("%d frames, the second time %d, want %d; dead letters %+v", len(got.frames), len(again.frames), c.frames, got.dead)
			}
			for i, f := range got.frames {
				if !bytes.Equal(f.payload, again.frames[i].payload) || (f.Producer == "p") != (i == 0) {
					t.Errorf("frame %d is of %q, or another the second time", i, f.Producer)
				}
			}
			if c.topic == &log {
				return
			}
			if events := once(t, c.topic, got.frames); events != len(c.ids) {
				t.Errorf("%d events of %d", events, len(c.ids))
			}
		})
	}
}

// A frame that is older than a rule is without what the rule takes, and has each id once.
func TestOlderFramesWithOneIDTwice(t *testing.T) {
	t.Parallel()
	old := meterOf(1)
	want := old
	want.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}}
	topic, err := old.Evolve(want)
	if err != nil {
		t.Fatal(err)
	}
	b := frame.NewBuilder(&old)
	for range 3 {
		e := schemas.Event{Type: "bytes", Attrs: []schemas.Attr{schemas.String("space", "s"), schemas.String("cause", "c"), schemas.Int64("delta", 1), schemas.String("email", "CLEAR")}}
		b.Append(&e, noon.UnixNano(), idOf(1))
	}
	f, payload := b.Encode()
	f.Producer, f.Seq = "p", 1
	m := message{subject: schemas.EventsSubject("usage", schemas.MonthOf(noon.UnixNano()), 0), header: nats.Header{}, data: bytes.Clone(payload), seq: 8, stored: noon}
	f.SetHeaders(m.header)
	j := evaluator{topic: &topic}
	got := j.message(&m, nil)
	if len(got.frames) != 3 || once(t, &topic, got.frames) != 3 {
		t.Fatalf("%d frames, dead letters %+v", len(got.frames), got.dead)
	}
	var r frame.Reader
	for _, f := range got.frames {
		if err := r.Open(f.payload, &topic, f.Schema); err != nil || f.Schema != topic.Version || bytes.Contains(r.Raw(), []byte("CLEAR")) {
			t.Errorf("version %d: %s, %v", f.Schema, r.Raw(), err)
		}
	}
}

// Lines of JSON with one id have frames of their own; those that come too often are kept as a dead letter, and others are not harmed.
func TestLinesWithOneIDTwice(t *testing.T) {
	t.Parallel()
	topic := meterOf(1)
	orders := schemas.Topic{Name: "orders", OnceBy: []string{schemas.ColMessage}, Lanes: 1}
	orders, err := orders.Declared()
	if err != nil {
		t.Fatal(err)
	}
	diff := func(n int) string {
		return fmt.Sprintf(`{"id":"%s","ts":"2026-11-20T11:00:00Z","type":"bytes","space":"s","cause":"c","delta":1}`+"\n", idOf(n))
	}
	var twice strings.Builder
	for n := range 1000 {
		twice.WriteString(strings.Repeat(diff(n), 2))
	}
	short := fmt.Sprintf(`{"id":"%s"}`+"\n", idOf(1))
	for name, c := range map[string]struct {
		topic        *schemas.Topic
		text         string
		frames, dead int
		events, kept int
	}{
		"one twice":          {&topic, diff(1) + diff(1), 2, 0, 2, 0},
		"each twice":         {&topic, twice.String(), 2, 0, 2000, 0},
		"too often":          {&topic, diff(2) + strings.Repeat(diff(1), 40) + diff(3), schemas.MaxSameIDs, 1, schemas.MaxSameIDs + 2, 40 - schemas.MaxSameIDs},
		"a megabyte of one":  {&orders, strings.Repeat(short, schemas.MaxMessageBytes/len(short)), schemas.MaxSameIDs, 1, schemas.MaxSameIDs, schemas.MaxMessageBytes/len(short) - schemas.MaxSameIDs},
		"without ids, alike": {&topic, strings.Repeat(strings.Replace(diff(1), fmt.Sprintf(`"id":"%s",`, idOf(1)), "", 1), 40), 1, 0, 40, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := evaluator{topic: c.topic}
			m := message{subject: schemas.EventsSubject(c.topic.Name, schemas.MonthOf(noon.UnixNano()), 0), data: []byte(c.text), seq: 7, stored: noon}
			got := j.message(&m, nil)
			if len(got.frames) != c.frames || len(got.dead) != c.dead {
				t.Fatalf("%d frames, dead letters %+v", len(got.frames), got.dead)
			}
			if events := once(t, c.topic, got.frames); events != c.events {
				t.Errorf("%d events, want %d", events, c.events)
			}
			for _, d := range got.dead {
				if schemas.Reason(d.err) != "same-id" || d.events != c.kept || !strings.Contains(d.err.Error(), "almanac dead retry "+c.topic.Name) {
					t.Errorf("%d lines: %v", d.events, d.err)
				}
			}
		})
	}
}
