package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/timers/timerstest"
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
		var late timerstest.Lateness
		for i := range n {
			calls := e.got(fmt.Sprintf("id%d", i))
			var due time.Time
			var came []time.Time
			for _, c := range calls {
				due, came = c.Due, append(came, c.came)
			}
			late.Add(due, came...)
		}
		t.Logf("%d across %s: created %.0f/s; %s", n, spread, float64(pilot+n)/took.Seconds(), &late)
	}
}
