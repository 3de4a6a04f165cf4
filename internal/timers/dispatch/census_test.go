package dispatch

import (
	"fmt"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/internal/timers/dispatch/wheel"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

func TestCensus(t *testing.T) {
	t.Parallel()
	const second, now = int64(time.Second), int64(100 * time.Second)
	entry := func(l *run, group string, slot int, id string, due int64) wheel.Entry {
		return wheel.Entry{Key: schemas.TimerSubject("t", l.number, group, slot, id), Due: due, Seq: 1, Group: unique.Make(group)}
	}
	one, other := newRun(newLane(nil, laneID{topic: "t"}, 2)), newRun(newLane(nil, laneID{topic: "t", number: 1}, 2))
	one.wheel.Put(entry(one, "a", 0, "later", now+second))
	one.wheel.Put(entry(one, "a", 0, "due", now-second))
	one.parked.add(blocker{group: "t.a"}, entry(one, "a", 2, "blocked", now-3*second))
	called := entry(one, "a", 2, "called", now-9*second)
	one.wheel.Put(called)
	one.held[called.Key] = held{"another", called}
	other.wheel.Put(entry(other, "a", 1, "x", now))
	other.wheel.Put(entry(other, "b", 3, "y", now-5*second))
	all := one.census(now)
	all.add(other.census(now))
	all.add(census{{"t", "none"}: {}})
	got := all.waiting(map[GroupID]int{{"t", "a"}: 4, {"t", "b"}: 4})
	want := []Waiting{
		{Topic: "t", Group: "a", Pending: 4, Blocked: 1, Overdue: 2, Oldest: 3 * time.Second, LargestSlot: 2},
		{Topic: "t", Group: "b", Pending: 1, Overdue: 1, Oldest: 5 * time.Second, LargestSlot: 4},
		{Topic: "t", Group: "none"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSlotsInLanes(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 3, 16, 4096} {
		want, sum := map[int]int{}, 0
		for s := range slots {
			want[s%4]++
		}
		for l := range 4 {
			if got := slotsIn(slots, l, 4); got != want[l] {
				t.Errorf("%d slots: %d in lane %d, expected %d", slots, got, l, want[l])
			}
			sum += want[l]
		}
		if sum != slots {
			t.Errorf("%d of %d slots", sum, slots)
		}
	}
}

// TestWaiting asks a dispatcher at work how its timers wait, and what its calls came to.
func TestWaiting(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.group("p", func(g *timer.Group) { g.Paused = true })
	d, stop, _ := e.dispatcher(nil)
	for i := range 20 {
		e.create(timers.Draft{ID: fmt.Sprint(i), Due: time.Now().Add(time.Hour)})
	}
	e.create(timers.Draft{ID: "paused", Group: "p", Due: time.Now()})
	e.create(timers.Draft{ID: "blocked", Due: time.Now(), URL: "http://169.254.169.254/"})
	e.create(timers.Draft{ID: "done", Due: time.Now()})
	e.state("blocked", timer.StateFailed)
	e.state("done", timer.StateDone)
	e.until("20 and the paused one wait", func() bool {
		w, err := d.Waiting(e.ctx)
		return err == nil && len(w) == 2 && w[0].Group == "g" && w[0].Pending == 20 && w[0].Overdue == 0 && w[0].LargestSlot >= 1 &&
			w[1].Group == "p" && w[1].Pending == 1 && w[1].Blocked == 1 && w[1].Overdue == 1 && w[1].Oldest > 0 && w[1].LargestSlot == 16
	})
	e.until("both calls are counted", func() bool {
		s, g := d.Stats(), GroupID{schemas.DefaultTimerTopic, "g"}
		return cmp.Equal(s.Calls, []Calls{{g, timer.Done, 1}, {g, timer.Failed, 1}}) && cmp.Equal(s.Errors, map[string]uint64{timer.ErrBlocked: 1})
	})
	stop()
	if w, err := d.Waiting(e.ctx); err != nil || len(w) != 0 {
		t.Errorf("a dispatcher that ended: %+v, %v", w, err)
	}
}

// TestGroupsAreBounded holds that the results of many groups are not counted apart without end.
func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	var d Dispatcher
	for i := range maxCounted + 5 {
		d.stats.called(&timer.Record{Key: schemas.TimerKey{Topic: "t", Group: fmt.Sprint("g", i)}, Op: timer.Done})
	}
	got := d.Stats().Calls
	if len(got) != maxCounted+1 || got[0] != (Calls{GroupID{Group: OtherGroup}, timer.Done, 5}) {
		t.Errorf("%d, the first is %+v", len(got), got[0])
	}
}

// TestForgetOwn holds that a run of a lane that ends late does not remove what the lane's next run entered.
func TestForgetOwn(t *testing.T) {
	t.Parallel()
	var s stats
	id := laneID{topic: "t", number: 1}
	old, next := make(chan chan<- census), make(chan chan<- census)
	s.answers(asked{laneID: id, ask: old})
	s.answers(asked{laneID: id, ask: next})
	s.forget(id, old)
	if got := s.toAsk(); len(got) != 1 || got[0].ask != next {
		t.Errorf("%d lanes can be asked after the old run ended", len(got))
	}
	s.forget(id, next)
	if got := s.toAsk(); len(got) != 0 {
		t.Errorf("%d lanes can be asked after both ended", len(got))
	}
}
