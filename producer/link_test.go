package producer

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// instantLink answers every frame at once: what is left is the producer.
type instantLink = discardLink

// silentLink never answers.
type silentLink struct{ instantLink }

func (l *silentLink) publish(*lane, *laneFrame) error { return nil }

// sent is a frame as it was published.
type sent struct {
	lane    int
	index   int
	seq     uint64
	head    schemas.Frame
	payload []byte
	msgID   string
}

// captureLink keeps every frame and answers as told; without a word, at once.
type captureLink struct {
	instantLink
	mu       sync.Mutex
	frames   []sent
	answerOf func(n int, f sent) (answer, bool) // of the nth attempt; false: no answer
	refuse   func(n int, f sent) error          // what publish returns
}

func (l *captureLink) publish(ln *lane, f *laneFrame) error {
	l.mu.Lock()
	s := sent{lane: ln.number, index: ln.index, seq: f.seq, head: f.head, payload: bytes.Clone(f.payload), msgID: f.msgID(ln)}
	n := 1
	for _, old := range l.frames {
		if old.lane == s.lane && old.seq == s.seq {
			n++
		}
	}
	l.frames = append(l.frames, s)
	l.mu.Unlock()
	if l.refuse != nil {
		if err := l.refuse(n, s); err != nil {
			return err
		}
	}
	a, ok := answer{outcome: stored}, true
	if l.answerOf != nil {
		a, ok = l.answerOf(n, s)
	}
	if a.lane, a.seq = s.index, s.seq; ok {
		l.s.answered(a)
	}
	return nil
}

func (l *captureLink) all() []sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.frames)
}

// events decodes the frames, each seq once.
func (l *captureLink) events(tb testing.TB) (events []Event) {
	tb.Helper()
	var r frame.Reader
	seen := map[[2]uint64]bool{}
	for _, f := range l.all() {
		key := [2]uint64{uint64(f.lane), f.seq}
		if seen[key] {
			continue
		}
		seen[key] = true
		if err := r.Open(f.payload, &app, f.head.Schema); err != nil {
			tb.Fatal(err)
		}
		for i := range r.Rows() {
			events = append(events, r.Event(i))
		}
	}
	return events
}
