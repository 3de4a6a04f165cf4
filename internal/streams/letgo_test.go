package streams

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// A frame that came twice is counted once: it was routed once. What fills a hole is none, and bare JSON is one or more.
func TestDistinctFrames(t *testing.T) {
	t.Parallel()
	of := func(producer string, seq uint64) checkpoint.EventsMessage {
		return checkpoint.EventsMessage{Frame: &schemas.Frame{Producer: producer, Seq: seq}}
	}
	for name, c := range map[string]struct {
		msgs  []checkpoint.EventsMessage
		want  uint64
		exact bool
	}{
		"none":               {nil, 0, true},
		"frames":             {[]checkpoint.EventsMessage{of("a", 1), of("a", 2), of("b", 1)}, 3, true},
		"repeated":           {[]checkpoint.EventsMessage{of("a", 1), of("a", 1), of("a", 2), of("a", 1)}, 2, true},
		"bare JSON":          {[]checkpoint.EventsMessage{{}, {}, of("a", 1)}, 3, false},
		"without a producer": {[]checkpoint.EventsMessage{of("", 0), of("", 0)}, 2, false},
		"blanks":             {[]checkpoint.EventsMessage{{Blank: true}, of("a", 1)}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, exact := distinct(c.msgs); got != c.want || exact != c.exact {
				t.Errorf("%s: %d, %v, want %d, %v", name, got, exact, c.want, c.exact)
			}
		})
	}
}
