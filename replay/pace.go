package replay

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Clock tells and waits for time.
type Clock interface {
	Now() time.Time
	// Wait returns at t, or with the context's error when that ends first.
	Wait(ctx context.Context, t time.Time) error
}

type machineClock struct{}

// Now implements Clock.
func (machineClock) Now() time.Time { return time.Now() }

// Wait implements Clock.
func (machineClock) Wait(ctx context.Context, t time.Time) error {
	return backoff.Sleep(ctx, time.Until(t))
}

// Pace says when events are due.
type Pace struct {
	// Speed is how many seconds of events pass in one of the clock's; 0 is as fast
	// as it goes.
	Speed float64
	// Rate is how many events a second there may be at most; 0 is any.
	Rate float64
}

// free says that nothing is ever waited for.
func (p Pace) free() bool { return p.Speed == 0 && p.Rate == 0 }

// pacer is a Pace under way. It reads no clock.
type pacer struct {
	Pace
	begun  bool
	start  time.Time // of the run
	first  int64     // the time of the first event, unix ns
	events float64   // so far, for the rate
	from   time.Time // since when they count
}

// due is when an event is: at its own time, scaled, after the first; never before
// the rate allows it. An event that is older than those before it is due at once.
// It counts so many events as sent then.
func (p *pacer) due(ts int64, events int, now time.Time) time.Time {
	if !p.begun {
		p.begun, p.start, p.from, p.first = true, now, now, ts
	}
	at := now
	if p.Speed > 0 {
		if t := p.start.Add(scaled(ts-p.first, p.Speed)); t.After(at) {
			at = t
		}
	}
	if p.Rate > 0 {
		t := p.from.Add(time.Duration(p.events / p.Rate * float64(time.Second)))
		if now.Sub(t) > rateSlack { // what was slow is not made up for all at once
			p.from, p.events, t = now, 0, now
		}
		if t.After(at) {
			at = t
		}
		p.events += float64(events)
	}
	return at
}

// rateSlack is how far behind its rate a replay may catch up.
const rateSlack = time.Second

// scaled is a span at a speed, at most what a Duration holds.
func scaled(ns int64, speed float64) time.Duration {
	d := float64(ns) / speed
	return time.Duration(max(min(d, maxSpan), -maxSpan))
}

const maxSpan = float64(1 << 62)
