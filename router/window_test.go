package router

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// A frame that is refused is known when it comes again, whatever the topic is by then. One
// whose bytes are damaged is not: it may still come whole.
func TestRefusedFramesAreKnown(t *testing.T) {
	newer := newTopic(testTopic.Fields...)
	newer.Version = 2
	other := newTopic(testTopic.Fields...)
	other.Lanes = 1
	for name, c := range map[string]struct {
		first, then *schemas.Topic
		at          time.Time
		change      func(*message)
		whole       bool // it comes again as it was made
		repeated    bool
	}{
		"refused twice":                {&testTopic, &testTopic, noon, set(schemas.HeaderSchema, "2"), false, true},
		"the topic has the schema now": {&testTopic, &newer, noon, set(schemas.HeaderSchema, "2"), false, true},
		"the topic is declared now":    {nil, &testTopic, noon, nil, false, true},
		"the topic is gone now":        {&other, nil, noon, nil, false, true},
		"the topic has the lane now":   {&other, &testTopic, noon, nil, false, true},
		"its time has come":            {&testTopic, &testTopic, noon.Add(25 * time.Hour), nil, false, true},
		"damaged, and damaged again":   {&testTopic, &testTopic, noon, func(m *message) { m.data[len(m.data)/2] ^= 4 }, false, false},
		"damaged, and whole":           {&testTopic, &testTopic, noon, func(m *message) { m.data[len(m.data)/2] ^= 4 }, true, false},
		"JSON that says it is a frame": {&testTopic, &testTopic, noon, func(m *message) { m.data = []byte(`{"message":"this one is long enough"}`) }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := frameMessage(t, c.at, 5, c.change)
			got := (&evaluator{topic: c.first}).message(&m, nil)
			if len(got.dead) != 1 {
				t.Fatalf("not refused: %+v", got)
			}
			var ws checkpoint.Windows
			if got.refused != nil {
				ws = ws.TakeRefused(*got.refused, m.seq)
			}
			if c.whole {
				m = frameMessage(t, c.at, 5, nil)
			}
			again := (&evaluator{topic: c.then}).message(&m, ws)
			if again.repeated != c.repeated || c.repeated && (again.rows != 3 || len(again.dead)+len(again.frames) > 0) {
				t.Errorf("%+v, want repeated: %v", again, c.repeated)
			}
			if c.whole && len(again.frames) != 1 {
				t.Errorf("%+v, want it routed", again)
			}
		})
	}
}

// A frame too far behind its producer's is refused, and does not move the window.
func TestStaleFramesAreNotTaken(t *testing.T) {
	ws := checkpoint.Windows{}.Take(schemas.Frame{Producer: "p", Seq: 100}, 1)
	m := frameMessage(t, noon, 5, nil)
	got := (&evaluator{topic: &testTopic}).message(&m, ws)
	if len(got.dead) != 1 || got.refused == nil {
		t.Fatalf("%+v", got)
	}
	if ws = ws.TakeRefused(*got.refused, m.seq); ws.Highest("p") != 100 || ws.Check(*got.refused) != checkpoint.Stale {
		t.Errorf("%+v", ws)
	}
}
