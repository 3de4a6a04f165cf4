package producer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// A router goes by the server's time: what it would make a dead letter of is refused, and the error names the clock,
// what it takes is not.
func TestTimesGoByTheServersClock(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	for name, c := range map[string]struct {
		skew    time.Duration // of the machine's clock
		caller  time.Duration // the event's time from the true one; 0: it does not have one
		refused bool
		says    string
	}{
		"no time, right clock":             {},
		"no time, clock a day behind":      {skew: -48 * time.Hour},
		"no time, clock two days ahead":    {skew: 48 * time.Hour, refused: true, says: "the clock of this machine is 48h0m"},
		"own time, clock two days ahead":   {skew: 48 * time.Hour, caller: time.Second},
		"own time too late, right clock":   {caller: 25 * time.Hour, refused: true},
		"too late by the server's alone":   {skew: 3 * time.Hour, caller: 26 * time.Hour, refused: true, says: "the clock of this machine is 3h0m"},
		"own time tomorrow, a clock ahead": {skew: 3 * time.Hour, caller: 23 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := e.connect(Config{Topic: "app", Now: func() time.Time { return time.Now().Add(c.skew) }})
			ev := Event{Message: name}
			if c.caller != 0 {
				ev.Time = time.Now().Add(c.caller)
			}
			err := p.Publish(e.ctx(), ev)
			if errors.Is(err, schemas.ErrTimeTooFarAhead) != c.refused || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want refused %v with %q", err, c.refused, c.says)
			}
			p.Log(ev)
			if err := p.Flush(e.ctx()); err != nil {
				t.Error(err)
			}
			if s := p.Stats(); (s.Stored == 2) == c.refused {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A clock that was set since the server's last answer, or a machine that slept, refuses nothing that is right.
func TestServerClockAfterAJump(t *testing.T) {
	t.Parallel()
	topic, began := app, time.Now()
	const days = 48 * time.Hour
	for name, c := range map[string]struct {
		was, is time.Duration // the machine's clock from the true one, at the answer and now
		slept   time.Duration // since the answer, which the monotonic clock does not know
		ts      time.Duration // from the true time
		refused bool
	}{
		"set right":            {was: days},
		"set wrong":            {is: days, ts: days, refused: false}, // until the next answer, soon
		"slept":                {slept: 2 * days},
		"wrong all the time":   {was: days, is: days, ts: days, refused: true},
		"right, a wrong event": {ts: days, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := began.Add(c.slept)
			clock := serverClock{woken: make(chan struct{}, 1)}
			clock.last.Store(&serverTime{server: began, local: began.Add(c.was).UnixNano(), came: began})
			if err := clock.check(&topic, now.Add(c.ts).UnixNano(), now.Add(c.is).UnixNano()); (err != nil) != c.refused {
				t.Errorf("%s: %v, want refused %v", name, err, c.refused)
			}
			if asks := len(clock.woken) > 0; asks != c.refused {
				t.Errorf("%s: asks again %v", name, asks)
			}
		})
	}
}
