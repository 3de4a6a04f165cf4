package dispatch

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/timers/dispatch/wheel"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// run is one pass of a lane, from its load until the front cannot be followed. Its fields belong to the goroutine
// of loop, but back. An attempt that outlives its run ends there: the next run has loaded the record by itself.
type run struct {
	*lane
	// back returns entries whose attempt did not begin.
	back chan wheel.Entry

	wheel  *wheel.Wheel
	parked parked
	// held are firing timers that are worked on, until their member is gone or claimWait has passed.
	held map[string]held
}

type held struct {
	owner string
	entry wheel.Entry
}

// readAhead is how many headers the client may hold, some 600 bytes each.
const readAhead = 1000

func newRun(l *lane) *run {
	return &run{lane: l, back: make(chan wheel.Entry, takeAtOnce), wheel: wheel.New(), parked: parked{}, held: map[string]held{}}
}

// loop fires what is due until ctx ends or the front cannot be followed.
func (l *run) loop(ctx, all context.Context, wg *sync.WaitGroup) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer l.d.limits.wake(l.nudged)()
	ask := make(chan chan<- census)
	l.d.stats.answers(asked{l.laneID, l.of, ask, ctx.Done()})
	defer l.d.stats.forget(l.laneID, ask)
	heads := make(chan *streams.Message, readAhead)
	wg.Go(func() { cancel(l.follow(ctx, heads)) })
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		l.fire(ctx, all, wg)
		alarm.Reset(l.wait())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-heads:
			l.apply(m)
			for range len(heads) { // what is there already
				l.apply(<-heads)
			}
		case e := <-l.back:
			l.wheel.Put(e)
		case <-alarm.C:
		case reply := <-ask:
			reply <- l.census(l.d.clock.Passed())
		case <-l.nudged:
			l.unpark()
			l.unhold()
		}
	}
}

// follow reads the lane's headers from the beginning.
func (l *run) follow(ctx context.Context, out chan<- *streams.Message) error {
	filter := schemas.TimerLaneFilter(schemas.FrontTopic(l.topic, l.first), strconv.Itoa(l.number))
	feed, err := streams.Follow(ctx, l.d.js, schemas.StreamTimers, streams.Range{Filter: filter, From: 1, HeadersOnly: true}, readAhead)
	if err != nil {
		return err
	}
	defer feed.Stop()
	for {
		m, err := feed.Next(ctx)
		if err != nil {
			return err
		}
		select {
		case out <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// apply enters a record into the wheel.
func (l *run) apply(m *streams.Message) {
	if !schemas.IsEvent(m.Header, m.Size) {
		return
	}
	r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
	if err != nil {
		return // a stray: the router keeps it as a dead letter
	}
	delete(l.held, m.Subject)
	e := wheel.Entry{Key: m.Subject, Due: r.Due, Seq: r.Seq, Group: unique.Make(r.Key.Group), Host: unique.Make(r.Host)}
	switch r.State() {
	case timer.StatePending:
		l.wheel.Put(e)
	case timer.StateFiring:
		l.firing(&r, e, m.Time)
	default:
		l.wheel.Remove(m.Subject, m.Sequence)
	}
}

// firing decides when a claim is looked at: once its owner is gone or slow, at once where no process works on it.
// One of our own that is worked on is looked at too: its end may have been given up a moment before.
func (l *run) firing(r *timer.Record, e wheel.Entry, stored time.Time) {
	l.wheel.Remove(e.Key, e.Seq)
	self := l.d.members.Self()
	switch {
	case r.Owner == self && !l.d.flights.has(r.Claim), r.Owner != self && !slices.Contains(l.d.members.Live(), r.Owner):
		l.wheel.Put(e)
	default:
		e.Due = stored.Add(claimWait).UnixNano()
		l.held[e.Key] = held{r.Owner, e}
		l.wheel.Put(e)
	}
}

// unhold puts claims of members that are gone back to their time.
func (l *run) unhold() {
	if len(l.held) == 0 {
		return
	}
	live := l.d.members.Live()
	for key, h := range l.held {
		if h.owner != l.d.members.Self() && !slices.Contains(live, h.owner) {
			h.entry.Due = 0
			l.wheel.Put(h.entry)
			delete(l.held, key)
		}
	}
}

// unpark puts back as many as might begin now.
func (l *run) unpark() {
	now := time.Now()
	l.parked.release(l.wheel, func(b blocker) int {
		var g *timer.Group
		if _, name, ok := strings.Cut(b.group, "."); ok {
			if one, known := l.d.groups.get(l.topic, name); known {
				g = &one
			}
		}
		return l.d.limits.free(b, g, now)
	})
}

// wait is how long nothing is due.
func (l *run) wait() time.Duration {
	due, ok := l.wheel.Next()
	if !ok {
		return maxWait
	}
	if !l.d.clock.Known() {
		return 50 * time.Millisecond
	}
	return min(max(time.Duration(due-l.d.clock.Passed()), 0)+minWait, maxWait)
}

const (
	// minWait keeps a wheel whose first entry is due from spinning while it is blocked.
	minWait = 200 * time.Microsecond
	maxWait = time.Minute
)

// fire begins the attempts that are due, as many as there are free places.
func (l *run) fire(ctx, all context.Context, wg *sync.WaitGroup) {
	l.d.stats.set(l.laneID, l.wheel, l.parked)
	now := l.d.clock.Passed()
	var due []started
	for len(due) < takeAtOnce {
		e, ok := l.wheel.Take(now)
		if !ok {
			break
		}
		group := e.Group.Value()
		g, known := l.d.groups.get(l.topic, group)
		if !known { // declared a moment ago, or lost with the registry
			l.parked.add(blocker{group: groupKey(l.topic, group)}, e)
			continue
		}
		at, by, ok := l.d.limits.take(&g, e.Host.Value(), time.Now())
		if !ok {
			l.parked.add(by, e)
			if by == (blocker{}) {
				break
			}
			continue
		}
		due = append(due, started{l, e, at})
	}
	if len(due) > 0 {
		wg.Go(func() { l.d.begin(ctx, all, wg, due) })
	}
}

// again gives an entry back to the run's wheel, unless the run has ended: the next one has loaded the record.
func (l *run) again(ctx context.Context, e wheel.Entry, after time.Duration) {
	e.Due = max(e.Due, l.d.clock.Passed()+int64(after))
	select {
	case l.back <- e:
	case <-ctx.Done():
	}
}
