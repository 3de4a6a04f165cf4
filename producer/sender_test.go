package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// closeNow ends a producer whose link will never answer.
func closeNow(p *Producer) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return p.Close(ctx)
}

func TestFrameWaitsForTheLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(captureLink)
		p := startOn(t, l, Config{Linger: 100 * time.Millisecond})
		defer closeNow(p)
		p.Log(Event{UserID: "a"})
		time.Sleep(99 * time.Millisecond)
		p.Log(Event{UserID: "a"})
		synctest.Wait()
		if n := len(l.all()); n != 0 {
			t.Fatalf("%d frames before the linger", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if f := l.all(); len(f) != 1 || f[0].head.Rows != 2 {
			t.Fatalf("after the linger: %+v", f)
		}
	})
}

func TestFrameFillsWhileTheLaneIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Bool
		l := &captureLink{answerOf: func(int, sent) (answer, bool) { return answer{outcome: stored}, answers.Load() }}
		p := startOn(t, l, Config{Linger: 20 * time.Millisecond, AckTimeout: 300 * time.Millisecond})
		defer closeNow(p)
		start := time.Now()
		at := func(d time.Duration, frames ...int) {
			t.Helper()
			time.Sleep(time.Until(start.Add(d)))
			synctest.Wait()
			var rows []int
			for _, f := range l.all() {
				rows = append(rows, f.head.Rows)
			}
			if !slices.Equal(rows, frames) {
				t.Fatalf("after %s: frames of %v events, want %v", d, rows, frames)
			}
		}
		p.Log(Event{UserID: "a"})
		at(20*time.Millisecond, 1) // sent, and not answered
		p.Log(Event{UserID: "a"})
		at(200*time.Millisecond, 1)
		p.Log(Event{UserID: "a"})
		at(269*time.Millisecond, 1)
		at(270*time.Millisecond, 1, 2) // held long enough
		p.Log(Event{UserID: "a"})
		answers.Store(true)
		at(700*time.Millisecond, 1, 2, 1, 1, 2) // the first again, what was held no longer, the second again
	})
}

func TestFrameClosesWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(captureLink)
		p := startOn(t, l, Config{Linger: time.Minute})
		defer closeNow(p)
		for range schemas.FrameRows + 1 {
			p.Log(Event{UserID: "a"})
		}
		const message = 60 << 10
		large := schemas.FrameRawBytes/message + 1
		for range large {
			p.Log(Event{UserID: "a", Message: strings.Repeat("x", message)})
		}
		synctest.Wait()
		if f := l.all(); len(f) != 2 || f[0].head.Rows != schemas.FrameRows || f[1].head.Rows != 1+large {
			t.Fatalf("%d frames, want one of %d rows and one of %d", len(f), schemas.FrameRows, 1+large)
		}
	})
}

// Events of ten years in any order share one frame a month: a frame costs the same
// whatever is in it, so one of a single event must stay the exception.
func TestMonthsInAnyOrderShareFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(captureLink)
		p := startOn(t, l, Config{Linger: time.Minute})
		start := time.Date(1985, 1, 2, 0, 0, 0, 0, time.UTC) // synctest is in 2000
		const months, rounds = 120, 20
		for range rounds {
			for m := range months {
				p.Log(Event{Time: start.AddDate(0, m, 0), UserID: "a"})
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(l.all()); n != months {
			t.Errorf("%d frames for %d months", n, months)
		}
	})
}

// The size of a frame on the wire is bounded by what its events can come to, not
// by what they usually do.
func TestFrameNeverExceedsItsLimit(t *testing.T) {
	l := new(captureLink)
	p := startOn(t, l, Config{Policy: Block})
	at := time.Now()
	for i := range 4000 {
		var attrs []Attr
		for k := range 40 {
			attrs = append(attrs, Time(fmt.Sprint(k), at.Add(time.Duration((i*977+k)*1_234_567))))
		}
		p.Log(Event{UserID: "a", Attrs: attrs})
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range l.all() {
		if len(f.payload) > schemas.MaxFrameBytes || f.head.RawBytes > schemas.MaxFrameBytes {
			t.Errorf("%d bytes encoded, %d raw", len(f.payload), f.head.RawBytes)
		}
	}
	if s := p.Stats(); s.Stored != 4000 {
		t.Errorf("%+v", s)
	}
}

func TestUnansweredFrameIsSentAgainAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard error
		l := &captureLink{answerOf: func(n int, _ sent) (answer, bool) { return answer{outcome: stored}, n == 4 }}
		p := startOn(t, l, Config{AckTimeout: time.Second, Hooks: Hooks{OnError: func(err error) { heard = err }}})
		start := time.Now()
		if err := p.Publish(t.Context(), Event{UserID: "a"}); err != nil {
			t.Fatal(err)
		}
		// 1 + 2 + 4 s, and up to a tenth more.
		if d := time.Since(start); d < 7*time.Second || d > 8*time.Second {
			t.Errorf("stored after %s", d)
		}
		frames := l.all()
		if len(frames) != 4 {
			t.Fatalf("%d attempts", len(frames))
		}
		for _, f := range frames {
			if f.seq != 1 || f.head != frames[0].head || !bytes.Equal(f.payload, frames[0].payload) {
				t.Errorf("sent again as %+v", f)
			}
		}
		if !errors.Is(heard, ErrOutcomeUnknown) {
			t.Errorf("OnError heard %v", heard)
		}
		if s := p.Stats(); s.Resent != 3 || s.Stored != 1 {
			t.Errorf("%+v", s)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome outcome
		refuse  error
		tries   int
		cause   string
	}{
		{"stream full: again until there is room", again, nil, 6, ""},
		{"disconnected: again until connected", again, nats.ErrReconnectBufExceeded, 6, ""},
		{"too large for the stream: final", tooBig, nil, 1, CauseMaxPayload},
		{"too large for the server: final", again, nats.ErrMaxPayload, 1, CauseMaxPayload},
		{"connection closed: final", again, nats.ErrConnectionClosed, 1, CauseConnectionClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &captureLink{
					answerOf: func(n int, _ sent) (answer, bool) {
						if n <= 5 {
							return answer{outcome: c.outcome, err: ErrNotStored}, true
						}
						return answer{outcome: stored}, true
					},
					refuse: func(n int, _ sent) error {
						if n <= 5 {
							return c.refuse
						}
						return nil
					},
				}
				p := startOn(t, l, Config{})
				err := p.Publish(t.Context(), Event{})
				if (err == nil) != (c.cause == "") || err != nil && !errors.Is(err, ErrNotStored) {
					t.Errorf("Publish: %v", err)
				}
				if n := len(l.all()); n != c.tries {
					t.Errorf("%d attempts, want %d", n, c.tries)
				}
				s := p.Stats()
				checkSum(t, s)
				if c.cause != "" && s.Dropped[c.cause] != 1 {
					t.Errorf("%+v", s)
				}
				closeNow(p)
			})
		})
	}
}

// A frame that gets no answer holds its lane at the width of the router's
// memory, and the other lanes not at all.
func TestStuckFrameHoldsItsLaneOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ev := Event{UserID: "a"}
		stuck := schemas.LaneOf(&app, &ev, 1, "")
		l := &captureLink{answerOf: func(_ int, f sent) (answer, bool) {
			return answer{outcome: stored}, f.lane != stuck || f.seq != 3
		}}
		p := startOn(t, l, Config{BufferEvents: 1_000_000, BufferBytes: 1 << 30})
		for range 200 * schemas.FrameRows {
			p.Log(ev)
		}
		for i := range 1000 {
			p.Log(Event{UserID: user(i)})
		}
		time.Sleep(time.Second)
		highest := map[int]uint64{}
		for _, f := range l.all() {
			highest[f.lane] = max(highest[f.lane], f.seq)
		}
		if got := highest[stuck]; got != 3+schemas.MaxInFlight-1 {
			t.Errorf("seq 3 is unanswered and %d was sent", got)
		}
		if len(highest) != app.Lanes {
			t.Errorf("lanes %v were sent", highest)
		}
		checkSum(t, p.Stats())
		closeNow(p)
	})
}

func TestInFlightBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &captureLink{answerOf: func(int, sent) (answer, bool) { return answer{}, false }}
		p := startOn(t, l, Config{InFlightBytes: 1, Linger: -1, AckTimeout: time.Hour})
		for i := range 100 {
			p.Log(Event{UserID: user(i)})
			synctest.Wait()
		}
		if n := len(l.all()); n != 1 {
			t.Errorf("%d frames in flight, want one", n)
		}
		closeNow(p)
	})
}

// A small frame takes of the budget what a stream's sync takes of its time: by bytes
// alone so many of them would wait that the stream says nothing else for seconds.
func TestSmallFramesInFlightAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &captureLink{answerOf: func(int, sent) (answer, bool) { return answer{}, false }}
		p := startOn(t, l, Config{InFlightBytes: 4 * minWeight, Linger: -1, AckTimeout: time.Hour})
		for i := range 100 {
			p.Log(Event{UserID: user(i)})
			synctest.Wait()
		}
		if n := len(l.all()); n != 4 {
			t.Errorf("%d small frames in flight, want 4", n)
		}
		closeNow(p)
	})
}

// While a closed frame waits to be sent, what comes after it goes together: a stream
// that cannot take as many frames as there are gets larger ones.
func TestWhatWaitsBehindAnUnsentFrameGoesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &captureLink{answerOf: func(int, sent) (answer, bool) { return answer{}, false }}
		p := startOn(t, l, Config{InFlightBytes: 1, AckTimeout: time.Hour})
		for range 5 {
			p.Log(Event{UserID: "one lane"})
			<-time.After(holdFor + 50*time.Millisecond)
			synctest.Wait()
		}
		sent, queued := len(l.all()), 0
		for _, lane := range p.lanes {
			lane.mu.Lock()
			queued += len(lane.queue)
			lane.mu.Unlock()
		}
		if sent != 1 || queued != 1 {
			t.Errorf("%d frames are sent and %d wait, want one of each and the rest in one that is open", sent, queued)
		}
		closeNow(p)
	})
}

func TestPublishSaysWhatItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startOn(t, new(silentLink), Config{BufferEvents: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Publish(ctx, Event{}); !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("taken, not answered: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Publish(ctx, Event{}); errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("never taken: %v", err)
		}
		s := p.Stats()
		checkSum(t, s)
		if s.Logged != 1 || s.Refused != 1 {
			t.Errorf("%+v", s)
		}
		closeNow(p)
	})
}

// Those who publish while a frame is on its way go together after it.
func TestPublishCommitsInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLink{after: 5 * time.Millisecond}
		p := startOn(t, l, Config{Linger: time.Minute})
		start := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if err := p.Publish(t.Context(), Event{UserID: "a"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if d, n := time.Since(start), p.Stats().Frames; d > 10*time.Millisecond || n > 2 {
			t.Errorf("%d frames in %s, want 2 in 10 ms", n, d)
		}
		closeNow(p)
	})
}

// slowLink answers after a while.
type slowLink struct {
	instantLink
	after time.Duration
}

func (l *slowLink) publish(ln *lane, f *laneFrame) error {
	a := answer{lane: ln.index, seq: f.seq, outcome: stored}
	time.AfterFunc(l.after, func() { l.s.answered(a) })
	return nil
}
