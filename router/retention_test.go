package router

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// What lies in a month wholly past the topic's retention is refused, by the time
// it was stored and no clock; what came before the refusal stays what it was.
func TestEvaluatePastRetention(t *testing.T) {
	topic := testTopic
	topic.KeepDays = 30
	old := time.Date(2026, 9, 30, 23, 59, 59, 0, time.UTC) // its month ends with the next second
	end := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	bare := func(stored time.Time) *message {
		return &message{subject: "events.app.2026-09.1", header: nats.Header{}, data: []byte(`{"message":"m","ts":"2026-09-30T12:00:00Z"}`), seq: 9, stored: stored}
	}
	frame := func(stored time.Time) *message {
		m := frameMessage(t, old, 1, nil)
		m.stored = stored
		return &m
	}
	for name, c := range map[string]struct {
		m    *message
		past bool
	}{
		"frame in time":   {frame(end.AddDate(0, 0, 30).Add(-1)), false},
		"frame too late":  {frame(end.AddDate(0, 0, 30)), true},
		"bare in time":    {bare(end.AddDate(0, 0, 30).Add(-1)), false},
		"bare too late":   {bare(end.AddDate(0, 0, 30)), true},
		"a year too late": {frame(end.AddDate(1, 0, 0)), true},
	} {
		t.Run(name, func(t *testing.T) {
			j := evaluator{topic: &topic}
			got := j.message(c.m, nil)
			if c.past {
				if len(got.dead) != 1 || len(got.frames) != 0 || !errors.Is(got.dead[0].err, schemas.ErrPastRetention) || reasonOf(got.dead[0].err) != "past-retention" {
					t.Errorf("%s: %+v", name, got)
				} else if text := got.dead[0].err.Error(); !strings.Contains(text, "2026-09") || !strings.Contains(text, "30 days") {
					t.Errorf("%s: the refusal names neither month nor days: %s", name, text)
				}
			} else if len(got.dead) != 0 || len(got.frames) != 1 {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
	// A frame that was routed while there was time and comes again is repeated, not dead.
	m := frame(end.AddDate(1, 0, 0))
	f, err := schemas.ParseFrame(m.header)
	if err != nil {
		t.Fatal(err)
	}
	j := evaluator{topic: &topic}
	if got := j.message(m, checkpoint.Windows(nil).Take(f, 1)); !got.repeated || len(got.dead) != 0 {
		t.Errorf("again: %+v", got)
	}
}

// A blank message stands for nothing, even in a month that is past; one that
// carries something is evaluated like any other.
func TestEvaluateBlank(t *testing.T) {
	topic := testTopic
	topic.KeepDays = 30
	m := message{subject: "events.app.2026-01.1", header: nats.Header{schemas.HeaderBlank: {"30"}}, seq: 9, stored: noon}
	j := evaluator{topic: &topic}
	if got := j.message(&m, nil); len(got.frames) != 0 || len(got.dead) != 0 || got.repeated {
		t.Errorf("blank: %+v", got)
	}
	m.subject, m.data = "events.app.2026-11.1", []byte(`{"message":"m"}`)
	if got := j.message(&m, nil); len(got.frames) != 1 || len(got.dead) != 0 {
		t.Errorf("it has an event: %+v", got)
	}
	m.subject, m.data = "events.app.2026-11.9", nil
	if got := j.message(&m, nil); len(got.dead) != 1 {
		t.Errorf("no such lane: %+v", got)
	}
}
