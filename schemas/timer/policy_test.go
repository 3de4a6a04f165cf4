package timer

import (
	"testing"
	"time"
)

func TestLadder(t *testing.T) {
	p := Policy{Attempts: 6, Initial: 30 * time.Second, Multiplier: 2, MaxInterval: 300 * time.Second}
	waits := []time.Duration{30, 60, 120, 240, 300}
	for _, u := range []float64{0, 0.25, 0.5, 0.999999} {
		now := int64(1e18)
		for i, w := range waits {
			due, again := p.Next(int64(i+1), 1e18, now, 0, u)
			low, high := now+int64(w*time.Second)*8/10, now+int64(w*time.Second)*12/10
			if !again || due < low || due > high {
				t.Errorf("u %g, wait %d: %s, again %v; want %ds within 20 %%", u, i+1, time.Duration(due-now), again, w)
			}
			now = due
		}
		if _, again := p.Next(6, 1e18, now, 0, u); again {
			t.Errorf("u %g: a seventh attempt", u)
		}
	}
}

func TestLadderEndsWithItsDuration(t *testing.T) {
	p := Policy{Attempts: 6, Initial: 30 * time.Second, Multiplier: 2, MaxInterval: 300 * time.Second, MaxDuration: 2 * time.Minute}
	for _, u := range []float64{0, 0.5, 0.999999} {
		first := int64(1e18)
		now, begun := first, 1
		for {
			due, again := p.Next(int64(begun), first, now, 0, u)
			if !again {
				break
			}
			now, begun = due, begun+1
		}
		if begun != 3 { // at 0, 30 and 90 s
			t.Errorf("u %g: %d attempts, want 3", u, begun)
		}
	}
}

func TestRetryAfterIsHonouredUpToTheMaximum(t *testing.T) {
	p := Policy{Attempts: 3, Initial: time.Second, MaxInterval: time.Minute}
	for _, c := range []struct{ asked, want time.Duration }{
		{0, time.Second}, {500 * time.Millisecond, time.Second}, {20 * time.Second, 20 * time.Second}, {time.Hour, time.Minute},
	} {
		due, _ := p.Next(1, 0, 0, c.asked, 0.5)
		if time.Duration(due) != c.want {
			t.Errorf("Retry-After %s: wait %s, want %s", c.asked, time.Duration(due), c.want)
		}
	}
}
