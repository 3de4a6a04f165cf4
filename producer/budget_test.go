package producer

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"
)

// queue is a stream that takes rate bytes a second, one frame after the other,
// and a way to it of so long.
type queue struct {
	rate float64
	way  time.Duration
	free time.Time
}

// answer is when the answer to n bytes sent at a time arrives.
func (q *queue) answer(n int, sent time.Time) time.Time {
	if q.free.Before(sent) {
		q.free = sent
	}
	q.free = q.free.Add(time.Duration(float64(n) / q.rate * float64(time.Second)))
	return q.free.Add(q.way)
}

// The budget keeps a stream busy and its queue short, whatever the rate and the
// way are.
func TestBudgetFollowsTheStream(t *testing.T) {
	const frame = 100_000
	for _, c := range []struct {
		name string
		rate float64
		way  time.Duration
	}{
		{"as fast as it gets", 100e6, time.Millisecond},
		{"a slow disk", 5e6, 5 * time.Millisecond},
		{"far away", 20e6, 200 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, q := newBudget(DefaultInFlightBytes), queue{rate: c.rate, way: c.way}
			now := time.Unix(0, 0)
			type flight struct{ sent, answered time.Time }
			var flying []flight
			var done int
			var longest time.Duration
			for range 5000 {
				for b.space(len(flying)*frame) >= frame {
					flying = append(flying, flight{now, q.answer(frame, now)})
				}
				f := flying[0]
				now = f.answered
				b.stored(frame, len(flying)*frame, f.sent, now)
				flying = flying[1:]
				if done++; done > 500 {
					longest = max(longest, now.Sub(f.sent))
				}
			}
			// The quickest answer is forgotten: what is left of a cut queue is taken for
			// the way, so that the bound is budgetDelay / (1 - budgetCut).
			if longest > c.way+4*budgetDelay {
				t.Errorf("a frame waited %s", longest)
			}
			rate := float64(done*frame) / now.Sub(time.Unix(0, 0)).Seconds()
			if want := min(c.rate, budgetStart/c.way.Seconds()); rate < 0.7*want {
				t.Errorf("%.1f MB/s, want %.1f", rate/1e6, want/1e6)
			}
		})
	}
}

func TestBudgetIsCutOnceForAFloodAndComesBack(t *testing.T) {
	b, now := newBudget(DefaultInFlightBytes), time.Unix(0, 0)
	for range 100 {
		b.stored(100_000, int(b.bytes), now, now.Add(time.Millisecond))
	}
	if b.bytes != DefaultInFlightBytes {
		t.Fatalf("%.0f bytes after quick answers, want %d", b.bytes, DefaultInFlightBytes)
	}
	for range 64 {
		b.congested(now, now.Add(time.Second))
	}
	if b.bytes != DefaultInFlightBytes/2 {
		t.Fatalf("%.0f bytes after a flood was refused, want half", b.bytes)
	}
	now = now.Add(time.Second)
	for range 64 {
		b.congested(now, now.Add(time.Second))
		now = now.Add(time.Second)
	}
	if b.space(0) != maxBufferBytes || b.space(1) > 0 {
		t.Fatalf("room for %d bytes, %d beside one in flight: want one frame at a time", b.space(0), b.space(1))
	}
	for range 10_000 {
		b.stored(100_000, 100_000, now, now.Add(time.Millisecond))
		now = now.Add(time.Millisecond)
	}
	if b.bytes != DefaultInFlightBytes {
		t.Errorf("%.0f bytes in the end, want %d", b.bytes, DefaultInFlightBytes)
	}
}

func TestBudgetStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 64<<20).Draw(t, "most")
		b, now := newBudget(most), time.Unix(0, 0)
		for range rapid.IntRange(0, 200).Draw(t, "answers") {
			sent := now.Add(-time.Duration(rapid.IntRange(0, 1e9).Draw(t, "took")))
			if rapid.Bool().Draw(t, "stored") {
				n := rapid.IntRange(1, 1<<20).Draw(t, "n")
				b.stored(n, n+rapid.IntRange(0, 16<<20).Draw(t, "inFlight"), sent, now)
			} else {
				b.congested(sent, now)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 1e9).Draw(t, "later")))
			if b.bytes < min(1, float64(most)) || b.bytes > float64(most) {
				t.Fatalf("%f bytes of %d", b.bytes, most)
			}
		}
	})
}

// A frame that the stream had no room for goes again soon, and not when the
// patience for an answer ends.
func TestRefusedForOverloadGoesAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &captureLink{answerOf: func(n int, _ sent) (answer, bool) {
			if n <= 2 {
				return answer{outcome: busy, err: ErrNotStored}, true
			}
			return answer{outcome: stored}, true
		}}
		p := startOn(t, l, Config{AckTimeout: time.Minute})
		defer closeNow(p)
		before, start := p.sender.budget.bytes, time.Now()
		if err := p.Publish(t.Context(), Event{UserID: "a"}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > time.Second || len(l.all()) != 3 {
			t.Errorf("stored after %s and %d attempts", d, len(l.all()))
		}
		synctest.Wait()
		if p.sender.budget.bytes >= before {
			t.Errorf("%.0f bytes may be in flight, as before", p.sender.budget.bytes)
		}
	})
}

// More producers than the stream's queue has room for: it refuses, they send less,
// and every event is stored long before anybody's patience for an answer ends.
func TestFloodIsRefusedAndStored(t *testing.T) {
	const producers, events = 4, 400
	e := newEnv(t, app, withSync, func(o *serverOptions, _ *jetstream.StreamConfig) { o.StreamMaxBufferedMsgs = 2 })
	var refused atomic.Uint64
	var all []*Producer
	for range producers {
		all = append(all, e.connect(Config{
			Topic: "app", Policy: Block, Linger: -1, AckTimeout: 5 * time.Minute,
			Hooks: Hooks{OnError: func(err error) {
				if errors.Is(err, ErrNotStored) {
					refused.Add(1)
				}
			}},
		}))
	}
	for i := range events {
		for _, p := range all {
			p.Log(Event{UserID: user(i)})
		}
	}
	for _, p := range all {
		if err := p.Flush(e.ctx()); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats(); s.Stored != events || s.DroppedTotal() != 0 {
			t.Errorf("%+v", s)
		}
	}
	t.Logf("%d refusals were told", refused.Load())
	if refused.Load() == 0 {
		t.Error("nothing was refused: the test floods no stream")
	}
}
