package dispatch

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/timers/dispatch/wheel"
	"github.com/almanac-events/almanac/schemas"
)

// Waiting is how the timers of one group wait in the lanes of a dispatcher.
type Waiting struct {
	Topic, Group string
	// Pending timers, and those of them that are due and found no free place.
	Pending, Blocked int
	// Overdue timers are past their due time, the first by Oldest.
	Overdue int
	Oldest  time.Duration
	// LargestSlot is the pending timers of the fullest slot over the mean of the slots in these lanes: 1 is
	// even. 0: no timer is pending.
	LargestSlot float64
}

// GroupID names a group.
type GroupID struct{ Topic, Group string }

// asked is a lane that can be asked for its census, until done is closed.
type asked struct {
	laneID
	of   int
	ask  chan chan<- census
	done <-chan struct{}
}

// Waiting returns how the timers of each group wait, by topic and group. It passes over every timer, so ask
// for it now and then only.
func (d *Dispatcher) Waiting(ctx context.Context) ([]Waiting, error) {
	all := census{}
	slots := map[GroupID]int{}
	for _, l := range d.stats.toAsk() {
		reply := make(chan census, 1)
		select {
		case l.ask <- reply:
		case <-l.done:
			continue
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		select {
		case one := <-reply:
			all.add(one)
		case <-l.done: // its next owner counts them
			continue
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		for _, g := range d.groups.of(l.topic) {
			id := GroupID{g.Topic, g.Name}
			slots[id] += slotsIn(g.Slots, l.number, l.of)
			all.add(census{id: {}})
		}
	}
	return all.waiting(slots), nil
}

// slotsIn returns how many slots of a group are in a lane: those that are the lane's number modulo the lanes.
func slotsIn(slots, lane, lanes int) int {
	return max(0, (slots-lane+lanes-1)/lanes)
}

// census adds up timers by group.
type census map[GroupID]*counted

type counted struct {
	Waiting
	slots map[int]int
}

// census counts the lane's timers. One that is being called is not pending, though it is on the wheel.
func (l *run) census(now int64) census {
	c := census{}
	count := func(w *wheel.Wheel, blocked int) {
		for e := range w.All() {
			if _, ok := l.held[e.Key]; !ok {
				c.count(GroupID{l.topic, e.Group.Value()}, &e, blocked, now)
			}
		}
	}
	count(l.wheel, 0)
	for _, w := range l.parked {
		count(w, 1)
	}
	return c
}

func (c census) count(id GroupID, e *wheel.Entry, blocked int, now int64) {
	g := c[id]
	if g == nil {
		g = &counted{slots: map[int]int{}}
		c[id] = g
	}
	g.Pending++
	g.Blocked += blocked
	if e.Due < now {
		g.Overdue++
		g.Oldest = max(g.Oldest, time.Duration(now-e.Due))
	}
	if k, err := schemas.ParseTimerSubject(e.Key); err == nil {
		g.slots[k.Slot]++
	}
}

// add adds the census of another lane. Lanes have no slot in common.
func (c census) add(other census) {
	for id, o := range other {
		g := c[id]
		if g == nil {
			c[id] = o
			continue
		}
		g.Pending += o.Pending
		g.Blocked += o.Blocked
		g.Overdue += o.Overdue
		g.Oldest = max(g.Oldest, o.Oldest)
		for slot, n := range o.slots {
			if g.slots == nil {
				g.slots = map[int]int{}
			}
			g.slots[slot] += n
		}
	}
}

// waiting sorts the groups. slots are how many each has in the lanes that were counted.
func (c census) waiting(slots map[GroupID]int) []Waiting {
	out := make([]Waiting, 0, len(c))
	for id, g := range c {
		w := g.Waiting
		w.Topic, w.Group = id.Topic, id.Group
		for _, n := range g.slots {
			w.LargestSlot = max(w.LargestSlot, float64(n)*float64(slots[id])/float64(w.Pending))
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Waiting) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), strings.Compare(a.Group, b.Group))
	})
	return out
}
