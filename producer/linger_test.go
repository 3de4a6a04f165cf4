package producer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

func TestLonger(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		linger, most    time.Duration
		lingers, events int
		want            int
	}{
		"too few events":                 {20 * ms, busyLinger, 1, busyEvents - 1, 1},
		"enough":                         {20 * ms, busyLinger, 1, busyEvents, 4},
		"nothing came in the second":     {20 * ms, busyLinger, 4, busyEvents, 4},
		"enough again":                   {20 * ms, busyLinger, 4, 4 * busyEvents, 16},
		"at its end":                     {20 * ms, busyLinger, 16, 1000 * busyEvents, 16},
		"a linger of 25 ms":              {25 * ms, busyLinger, 1, busyEvents, 4},
		"16 of them are above the bound": {25 * ms, busyLinger, 4, 4 * busyEvents, 4},
		"a spool's bound":                {20 * ms, spoolAfter, 4, 4 * busyEvents, 4},
		"a long linger":                  {100 * ms, busyLinger, 1, busyEvents, 1},
		"a short linger":                 {ms, busyLinger, 4, 4 * busyEvents, 16},
		"a short linger stays short":     {ms, busyLinger, 16, 100 * busyEvents, 16},
		"none":                           {-1, busyLinger, 1, busyEvents, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := longer(c.linger, c.most, c.lingers, c.events); got != c.want {
				t.Errorf("%d lingers, want %d", got, c.want)
			}
		})
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
		"busy":          {events: []int{busyEvents, busyEvents, busyEvents, busyEvents}, at: 16 * linger, rows: 4 * busyEvents},
		"calm":          {events: []int{busyEvents - 1}, at: linger, rows: busyEvents - 1},
		"calm later":    {events: []int{busyEvents, busyEvents - 1}, at: 4 * linger, rows: 2*busyEvents - 1},
		"awaited":       {events: []int{busyEvents}, submit: true, at: linger, rows: busyEvents + 1},
		"little room":   {cfg: Config{BufferEvents: busyBuffer * (busyEvents - 1)}, events: []int{busyEvents}, at: linger, rows: busyEvents},
		"drop_oldest":   {cfg: Config{Policy: DropOldest}, events: []int{busyEvents}, at: linger, rows: busyEvents},
		"a long linger": {cfg: Config{Linger: 100 * time.Millisecond}, events: []int{busyEvents, busyEvents, busyEvents}, at: 100 * time.Millisecond, rows: 3 * busyEvents},
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

// A frame that waits on is closed once a caller comes to wait for it, or the buffer fills.
func TestFrameWaitsNoMore(t *testing.T) {
	const linger = schemas.FrameLinger
	for name, c := range map[string]struct {
		cfg  Config
		then func(*testing.T, *Producer)
	}{
		"submit": {then: func(t *testing.T, p *Producer) {
			if err := p.Submit(t.Context(), Event{UserID: "a"}, func(error) {}); err != nil {
				t.Fatal(err)
			}
		}},
		"a quarter of the buffer": {cfg: Config{BufferEvents: 64}, then: func(_ *testing.T, p *Producer) {
			for range 2 {
				p.Log(Event{UserID: "a"})
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := new(captureLink)
				p := startOn(t, l, c.cfg)
				defer closeNow(p)
				start := time.Now()
				for i := range 5 {
					time.Sleep(time.Until(start.Add(time.Duration(i) * (linger + time.Millisecond))))
					for range 3 {
						p.Log(Event{UserID: "a"})
					}
				}
				synctest.Wait()
				if f := l.all(); len(f) > 0 {
					t.Fatalf("a frame of %d events before anything waits for it", f[0].head.Rows)
				}
				c.then(t, p)
				synctest.Wait()
				if f := l.all(); len(f) != 1 {
					t.Fatalf("%d frames at once, want one", len(f))
				}
			})
		})
	}
}
