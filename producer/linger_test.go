package producer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

func TestLingersOn(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		linger          time.Duration
		lingers, events int
		want            bool
	}{
		{20 * ms, 1, busyEvents - 1, false},
		{20 * ms, 1, busyEvents, true},
		{20 * ms, 2, busyEvents, false}, // nothing came in the second
		{20 * ms, 2, 2 * busyEvents, true},
		{20 * ms, 3, 20 * busyEvents, false}, // 60 ms
		{25 * ms, 1, busyEvents, true},
		{25 * ms, 2, 2 * busyEvents, false}, // 75 ms
		{31 * ms, 1, busyEvents, false},
		{time.Second, 1, busyEvents, false},
		{ms, 2, 2 * busyEvents, true},
		{ms, 3, 3 * busyEvents, false}, // three times what was asked for
		{-1, 1, busyEvents, false},
	} {
		if got := lingersOn(c.linger, c.lingers, c.events); got != c.want {
			t.Errorf("linger %s, %d of them, %d events: %t", c.linger, c.lingers, c.events, got)
		}
	}
}

func TestFrameOfABusyLaneWaitsLonger(t *testing.T) {
	const linger = schemas.FrameLinger
	for name, c := range map[string]struct {
		cfg    Config
		submit bool  // a caller waits for the first event
		events []int // at the start of each linger
		at     time.Duration
		rows   int
	}{
		"busy":          {events: []int{busyEvents, busyEvents, busyEvents}, at: 3 * linger, rows: 3 * busyEvents},
		"calm":          {events: []int{busyEvents - 1}, at: linger, rows: busyEvents - 1},
		"calm later":    {events: []int{busyEvents, busyEvents - 1}, at: 2 * linger, rows: 2*busyEvents - 1},
		"awaited":       {events: []int{busyEvents}, submit: true, at: linger, rows: busyEvents + 1},
		"little room":   {cfg: Config{BufferEvents: busyBuffer * (busyEvents - 1)}, events: []int{busyEvents}, at: linger, rows: busyEvents},
		"drop_oldest":   {cfg: Config{Policy: DropOldest}, events: []int{busyEvents}, at: linger, rows: busyEvents},
		"a long linger": {cfg: Config{Linger: 50 * time.Millisecond}, events: []int{busyEvents, busyEvents, busyEvents}, at: 50 * time.Millisecond, rows: 3 * busyEvents},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := new(captureLink)
				p := startOn(t, l, c.cfg)
				defer closeNow(p)
				start := time.Now()
				if c.submit {
					if err := p.Submit(t.Context(), Event{UserID: "a"}, func(error) {}); err != nil {
						t.Fatal(err)
					}
				}
				for i, n := range c.events {
					time.Sleep(time.Until(start.Add(time.Duration(i) * (linger + time.Millisecond))))
					for range n {
						p.Log(Event{UserID: "a"})
					}
				}
				time.Sleep(time.Until(start.Add(c.at)) - 1)
				synctest.Wait()
				if f := l.all(); len(f) > 0 {
					t.Fatalf("a frame of %d events before %s", f[0].head.Rows, c.at)
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if f := l.all(); len(f) != 1 || f[0].head.Rows != c.rows {
					t.Fatalf("after %s: %+v, want one frame of %d", c.at, f, c.rows)
				}
			})
		})
	}
}
