package router

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// JSON for a meter is evaluated line by line, a frame whole; a topic whose events come from a
// front takes neither.
func TestEvaluateKinds(t *testing.T) {
	t.Parallel()
	meter := schemas.NewTopicOf(kinds.Meter, "usage")
	meter.Lanes = 4
	const good = `{"ts":"2026-11-20T11:00:00Z","type":"bytes","space":"s","cause":"c","delta":1,"b":"2","a":"1"}`
	lines := strings.Join([]string{good, strings.Replace(good, `"delta":1`, `"delta":1.5`, 1), good, strings.Replace(good, `"cause":"c",`, "", 1),
		strings.Replace(good, "11:00", "12:06", 1)}, "\n")
	cause := schemas.Event{Attrs: []schemas.Attr{schemas.String("cause", "c")}}
	subject := schemas.EventsSubject("usage", 202611, schemas.LaneOf(&meter, &cause, 0, ""))
	json := message{subject: subject, data: []byte(lines), seq: 7, stored: noon}
	j := evaluator{topic: &meter}
	got := j.message(&json, nil)
	if len(got.frames) != 1 || got.frames[0].Rows != 2 || len(got.dead) != 2 {
		t.Fatalf("%d frames, dead letters %+v", len(got.frames), got.dead)
	}
	for i, want := range []struct {
		reason, text string
		lines        []int
	}{{"bad-value", `delta is "1.5", it must be a whole number`, []int{2, 4}}, {"time-too-far-ahead", "the limit is 5m0s", []int{5}}} {
		if d := got.dead[i]; schemas.Reason(d.err) != want.reason || !strings.Contains(d.err.Error(), want.text) || !slices.Equal(d.lines, want.lines) {
			t.Errorf("dead letter %d: %v, lines %v", i, d.err, d.lines)
		}
	}

	// The frame of a producer that knew no rules.
	plain := schemas.NewTopic("usage", meter.Fields...)
	plain.Lanes = 4
	b := frame.NewBuilder(&plain)
	for _, cause := range []string{"c", ""} {
		e := schemas.Event{Attrs: []schemas.Attr{schemas.String("space", "s"), schemas.String("cause", cause), schemas.Int64("delta", 1)}}
		b.Append(&e, noon.UnixNano(), schemas.NewID(1))
	}
	f, payload := b.Encode()
	f.Producer, f.Seq = "p", 1
	m := message{subject: json.subject, header: nats.Header{}, data: bytes.Clone(payload), seq: 8, stored: noon}
	f.SetHeaders(m.header)
	if got := j.message(&m, nil); len(got.frames) != 0 || len(got.dead) != 1 || schemas.Reason(got.dead[0].err) != "bad-value" || got.dead[0].events != 2 {
		t.Errorf("%d frames, dead letters %+v", len(got.frames), got.dead)
	}

	documents := schemas.NewTopicOf(kinds.Document, "usage")
	j = evaluator{topic: &documents}
	for name, m := range map[string]*message{"JSON": &json, "a frame": &m} {
		t.Run(name, func(t *testing.T) {
			if got := j.message(m, nil); len(got.frames) != 0 || len(got.dead) != 1 || schemas.Reason(got.dead[0].err) != "wrong-kind" {
				t.Errorf("%s: %d frames, dead letters %+v", name, len(got.frames), got.dead)
			}
		})
	}
}
