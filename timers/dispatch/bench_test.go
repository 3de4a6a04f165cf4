package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/embedded/embeddedtest"
)

// TestFigures prints the lateness of timers at the callback, with NATS writing to disk before it acknowledges:
// ALMANAC_TIMERS_FIGURES=10000 spreads so many across a minute, and then has as many due at one instant.
func TestFigures(t *testing.T) {
	n := sized("ALMANAC_TIMERS_FIGURES", 0)
	if n == 0 {
		t.Skip("set ALMANAC_TIMERS_FIGURES=10000")
	}
	for _, spread := range []time.Duration{time.Minute, 0} {
		e := newEnv(t, embeddedtest.WithSync())
		// The first tenth says how long the others take to create: those that were due before the dispatcher
		// starts would measure that, and not its lateness.
		pilot := n / 10
		began := time.Now()
		e.createNamed("pilot", pilot, func(int) time.Time { return time.Now() })
		start := time.Now().Add(20*time.Since(began) + 2*time.Second)
		e.createAll(n, func(i int) time.Time { return start.Add(spread * time.Duration(i) / time.Duration(n)) })
		took := time.Since(began)
		d, _, _ := e.dispatcher(nil)
		defer func() { t.Logf("%+v", d.Stats()) }()
		if over := time.Since(start); over > 0 {
			t.Errorf("creating took %s longer than the first due time", over)
		}
		e.until("all are called", func() bool { return e.called() == pilot+n })
		e.allOver()
		var late []time.Duration
		early, twice := 0, 0
		for i := range n {
			calls := e.got(fmt.Sprintf("id%d", i))
			if len(calls) != 1 {
				twice++
				continue
			}
			d := calls[0].came.Sub(calls[0].Due)
			if d < 0 {
				early++
			}
			late = append(late, d)
		}
		slices.Sort(late)
		at := func(p float64) time.Duration { return late[int(p*float64(len(late)-1))].Round(100 * time.Microsecond) }
		t.Logf("%d across %s: created %.0f/s; late p50 %s, p99 %s, max %s; %d early, %d not called once",
			n, spread, float64(pilot+n)/took.Seconds(), at(0.5), at(0.99), at(1), early, twice)
	}
}
