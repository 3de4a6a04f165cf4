package producer

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// A frame that a goroutine encodes while Close gives it up is counted once and
// leaves nothing in memory.
func TestFrameGivenUpWhileEncoded(t *testing.T) {
	p := startOn(t, new(silentLink), Config{Linger: time.Minute})
	p.Log(Event{UserID: "a"})
	ev := Event{UserID: "a"}
	l := p.lanes[schemas.LaneOf(&app, &ev, 1, p.id)]
	l.mu.Lock()
	f := l.open[0]
	f.claimed = true
	l.close(f)
	l.mu.Unlock()
	if err := closeNow(p); err == nil {
		t.Error("Close lost an event without a word")
	}
	l.encode(f)
	s := p.Stats()
	checkSum(t, s)
	if s.Dropped[CauseClosed] != 1 || p.buffer.used.Load() != 0 || p.unencoded.Load() != 0 {
		t.Errorf("%+v; the buffer holds %x, %d unencoded", s, p.buffer.used.Load(), p.unencoded.Load())
	}
}

// When the sender is behind, the caller that fills a frame encodes it.
func TestLoggersEncodeWhenTheSenderIsBehind(t *testing.T) {
	p := startOn(t, new(instantLink), Config{})
	defer p.Close(t.Context())
	p.unencoded.Add(maxUnencoded + 1) // as if so many were waiting
	for range 3 * schemas.FrameRows {
		p.Log(Event{UserID: "a"})
	}
	p.unencoded.Add(-maxUnencoded - 1)
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Stored != 3*schemas.FrameRows || p.unencoded.Load() != 0 {
		t.Errorf("%+v, %d unencoded", s, p.unencoded.Load())
	}
}
