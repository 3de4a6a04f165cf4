package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/timers/dispatch/wheel"
	"github.com/almanac-events/almanac/schemas/timer"
)

// TestParkedKeepTheirOrder has two lanes compete for one place after the other: each lane's timers begin in
// the order of their due times, whatever place they lost.
func TestParkedKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const n = 50
	type side struct {
		parked
		*wheel.Wheel
		begun []int64
	}
	by := blocker{host: "h:80"}
	lanes := []*side{{parked: parked{}, Wheel: wheel.New()}, {parked: parked{}, Wheel: wheel.New()}}
	for _, l := range lanes {
		for i := range n {
			l.add(by, wheel.Entry{Key: fmt.Sprint(i), Due: int64(i + 1), Seq: uint64(i + 1)})
		}
	}
	for turn := range 2 * n {
		for _, l := range lanes { // both are told of the free place
			l.release(l.Wheel, func(blocker) int { return 1 })
		}
		winner := lanes[turn%2]
		e, ok := winner.Take(n + 1)
		if !ok {
			t.Fatalf("turn %d: nothing is due", turn)
		}
		winner.begun = append(winner.begun, e.Due)
		for _, l := range lanes {
			for e, ok := l.Take(n + 1); ok; e, ok = l.Take(n + 1) {
				l.add(by, e)
			}
		}
	}
	for k, l := range lanes {
		for i, due := range l.begun {
			if due != int64(i+1) {
				t.Fatalf("lane %d: attempt %d was of the timer due at %d: %v", k, i, due, l.begun)
			}
		}
	}
}

// TestFreeOfAGroup holds that timers of a group that cannot begin are not tried again with each call that ends.
func TestFreeOfAGroup(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		g    *timer.Group
		took int
		now  time.Time
		want int
	}{
		"unknown":              {nil, 0, now, 0},
		"paused":               {&timer.Group{Paused: true}, 0, now, 0},
		"without bounds":       {&timer.Group{}, 3, now, 7},
		"concurrent":           {&timer.Group{MaxConcurrent: 5}, 3, now, 2},
		"a second":             {&timer.Group{MaxPerSecond: 4}, 3, now, 1},
		"a second, in another": {&timer.Group{MaxPerSecond: 4}, 3, now.Add(time.Second), 7},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimits(20, 20)
			g := timer.Group{Topic: "t", Name: "g"}
			if c.g != nil {
				g, c.g.Topic, c.g.Name = *c.g, "t", "g"
				g.Topic, g.Name, g.Paused = "t", "g", false
			}
			for range c.took {
				if _, _, ok := l.take(&g, "h", now); !ok {
					t.Fatal("no place")
				}
			}
			if got := l.free(blocker{group: "t.g"}, c.g, c.now); got != c.want {
				t.Errorf("%d are free, expected %d", got, c.want)
			}
		})
	}
}

// TestAGroupLeavesPlacesToOthers holds that a group whose receivers hang, at however many hosts, never has all places, and that
// what is free of its own is what a take would give.
func TestAGroupLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	group := func(name string) *timer.Group { return &timer.Group{Topic: "t", Name: name} }
	for calls := 1; calls <= 100; calls++ {
		l := newLimits(calls, 1)
		took := func(name string) (n int) {
			free := l.free(blocker{group: "t." + name}, group(name), now)
			for {
				if _, _, ok := l.take(group(name), fmt.Sprintf("%s-%d", name, n), now); !ok {
					break
				}
				n++
			}
			if n != free {
				t.Errorf("of %d calls group %s took %d, and %d were said to be free", calls, name, n, free)
			}
			return n
		}
		if n := took("hangs"); n != (calls+1)/2 {
			t.Errorf("of %d calls a group alone took %d, expected half", calls, n)
		}
		if n := took("other"); n == 0 && calls > 1 {
			t.Errorf("of %d calls nothing was left to another group", calls)
		}
		if n := took("third"); n == 0 && calls > 3 {
			t.Errorf("of %d calls nothing was left to a third group", calls)
		}
	}
}
