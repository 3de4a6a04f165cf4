package producer

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClockFollowsTheWallClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		for _, d := range []time.Duration{0, 1, wallFresh, wallFresh + 1, time.Hour, 3} {
			time.Sleep(d)
			if got, want := c.now(), time.Now().UnixNano(); got != want {
				t.Fatalf("after %v: %d, want %d", d, got, want)
			}
		}
		// The wall clock was set: seen once the reading is stale.
		c.offset.Add(int64(time.Hour))
		time.Sleep(wallFresh + 1)
		if got, want := c.now(), time.Now().UnixNano(); got != want {
			t.Fatalf("a wrong offset stayed: %d, want %d", got, want)
		}
	})
}
