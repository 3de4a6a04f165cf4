package dispatch

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/almanac-events/almanac/fronts"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/timers/dispatch/wheel"
)

// lane fires one lane of a topic. All fields below nudged belong to the goroutine of run.
type lane struct {
	d *Dispatcher
	laneID
	of     int // lanes of the topic
	nudged chan struct{}
	// back returns entries whose attempt did not begin.
	back chan wheel.Entry

	wheel  *wheel.Wheel
	parked parked
	// held are firing timers of other live members, until the member is gone or claimPatience has passed.
	held  map[string]held
	names names
}

type held struct {
	owner string
	entry wheel.Entry
}

// feedAhead is how many headers the client may hold, some 600 bytes each.
const feedAhead = 1000

func newLane(d *Dispatcher, id laneID, of int) *lane {
	return &lane{d: d, laneID: id, of: of, nudged: make(chan struct{}, 1), back: make(chan wheel.Entry, takeAtOnce)}
}

// nudge has the lane look again: members, groups or slots changed.
func (l *lane) nudge() {
	select {
	case l.nudged <- struct{}{}:
	default:
	}
}

// run loads the lane and fires what is due until ctx ends or the front cannot be followed.
func (l *lane) run(ctx, all context.Context, wg *sync.WaitGroup) error {
	if err := l.whole(ctx); err != nil {
		return err
	}
	l.wheel, l.parked, l.held, l.names = wheel.New(), parked{}, map[string]held{}, names{}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer l.d.limits.wake(l.nudged)()
	ask := make(chan chan<- census)
	l.d.stats.answers(asked{l.laneID, l.of, ask, ctx.Done()})
	defer l.d.stats.forget(l.laneID, ask)
	heads := make(chan *streams.Message, feedAhead)
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
			reply <- l.census(l.d.clock.now())
		case <-l.nudged:
			l.unpark()
			l.unhold()
		}
	}
}

// whole refuses a front that lost records. What is called then is written under sequences that were given before,
// and its history would be lost; and timers that ended could be there again, of an older copy.
func (l *lane) whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wholeTimeout)
	defer cancel()
	topics, err := l.d.cfg.Registry.Topics(ctx)
	if err != nil {
		return err
	}
	return fronts.CheckWhole(ctx, l.d.js, schemas.StreamTimers, topics)
}

const wholeTimeout = 30 * time.Second

// follow reads the lane's headers from the beginning.
func (l *lane) follow(ctx context.Context, out chan<- *streams.Message) error {
	filter := schemas.TimerLaneFilter(l.topic, strconv.Itoa(l.lane))
	feed, err := streams.Follow(ctx, l.d.js, schemas.StreamTimers, streams.Range{Filter: filter, From: 1, HeadersOnly: true}, feedAhead)
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
func (l *lane) apply(m *streams.Message) {
	if !schemas.IsEvent(m.Header, m.Size) {
		return
	}
	r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
	if err != nil {
		return // a stray: the router keeps it as a dead letter
	}
	delete(l.held, m.Subject)
	e := wheel.Entry{Key: m.Subject, Due: r.Due, Seq: r.Seq, Group: l.names.number(r.Key.Group), Host: l.names.number(r.Host)}
	switch r.State() {
	case timer.StatePending:
		l.wheel.Put(e)
	case timer.StateFiring:
		l.firing(&r, e, m.Time)
	default:
		l.wheel.Remove(m.Subject, m.Sequence)
	}
}

// firing decides what a claim means here: nothing while it is worked on, else it is looked at when its owner
// is gone or slow.
func (l *lane) firing(r *timer.Record, e wheel.Entry, stored time.Time) {
	l.wheel.Remove(e.Key, e.Seq)
	self := l.d.members.Self()
	switch {
	case r.Owner == self && l.d.flights.has(r.Claim):
	case r.Owner == self, !slices.Contains(l.d.members.Live(), r.Owner):
		l.wheel.Put(e)
	default:
		e.Due = stored.Add(claimPatience).UnixNano()
		l.held[e.Key] = held{r.Owner, e}
		l.wheel.Put(e)
	}
}

// unhold puts claims of members that are gone back to their time.
func (l *lane) unhold() {
	if len(l.held) == 0 {
		return
	}
	live := l.d.members.Live()
	for key, h := range l.held {
		if !slices.Contains(live, h.owner) {
			h.entry.Due = 0
			l.wheel.Put(h.entry)
			delete(l.held, key)
		}
	}
}

// unpark puts back as many as might begin now.
func (l *lane) unpark() {
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
func (l *lane) wait() time.Duration {
	due, ok := l.wheel.Next()
	if !ok {
		return maxWait
	}
	if !l.d.clock.known() {
		return 50 * time.Millisecond
	}
	return min(max(time.Duration(due-l.d.clock.now()), 0)+minWait, maxWait)
}

const (
	// minWait keeps a wheel whose first entry is due from spinning while it is blocked.
	minWait = 200 * time.Microsecond
	maxWait = time.Minute
)

// fire begins the attempts that are due, as many as there are free places.
func (l *lane) fire(ctx, all context.Context, wg *sync.WaitGroup) {
	l.d.stats.set(l.laneID, l.wheel, l.parked)
	now := l.d.clock.now()
	var due []started
	for len(due) < takeAtOnce {
		e, ok := l.wheel.Take(now)
		if !ok {
			break
		}
		group, host := l.names.text(e.Group), l.names.text(e.Host)
		g, known := l.d.groups.get(l.topic, group)
		if !known { // declared a moment ago, or lost with the registry
			l.parked.add(blocker{group: l.topic + "." + group}, e)
			continue
		}
		if by, ok := l.d.limits.take(&g, host, time.Now()); !ok {
			l.parked.add(by, e)
			if by == (blocker{}) {
				break
			}
			continue
		}
		due = append(due, started{l, e, g, host})
	}
	if len(due) > 0 {
		wg.Go(func() { l.d.begin(ctx, all, wg, due) })
	}
}

// again gives an entry back to the lane's wheel, unless the lane ends: its next run loads it.
func (l *lane) again(ctx context.Context, e wheel.Entry, after time.Duration) {
	e.Due = max(e.Due, l.d.clock.now()+int64(after))
	select {
	case l.back <- e:
	case <-ctx.Done():
	}
}

// names numbers texts that come again and again, such as groups and hosts.
type names struct {
	numbers map[string]uint32
	texts   []string
}

func (n *names) number(s string) uint32 {
	if i, ok := n.numbers[s]; ok {
		return i
	}
	if n.numbers == nil || len(n.texts) == math.MaxUint32 {
		n.numbers = map[string]uint32{}
	}
	i := uint32(len(n.texts))
	n.numbers[s] = i
	n.texts = append(n.texts, s)
	return i
}

func (n *names) text(i uint32) string { return n.texts[i] }
