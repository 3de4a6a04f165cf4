package pool

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// maxUses bounds the pairs of an input and a topic that are told apart; what comes by more is not shown.
const maxUses = 1000

// Use is how much of a topic comes by an input.
type Use struct {
	Input Input
	Topic string
	// LastEvent is when events were last taken.
	LastEvent time.Time
	// Events are those that were taken since this process began.
	Events uint64
	// PerSecond are those of the last minute, a second.
	PerSecond float64
}

// uses count what comes. The zero value is empty.
type uses struct {
	mu    sync.Mutex
	known map[useOf]*use
}

type useOf struct {
	input Input
	topic string
}

// use has the counts of the last spans of ten seconds.
type use struct {
	last   time.Time
	events uint64
	spans  [useSpans]struct {
		number int64 // since 1970
		events uint64
	}
}

const (
	useSpan  = 10 * time.Second
	useSpans = 6
)

// note counts events that were taken.
func (u *uses) note(e *Events, now time.Time) {
	if e.Outcome != Stored && e.Outcome != Taken {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.known[useOf{e.Input, e.Topic}]
	if one == nil {
		if len(u.known) >= maxUses {
			return
		}
		if u.known == nil {
			u.known = map[useOf]*use{}
		}
		one = &use{}
		u.known[useOf{e.Input, e.Topic}] = one
	}
	n := uint64(max(e.Count, 0))
	one.last, one.events = now, one.events+n
	number := now.UnixNano() / int64(useSpan)
	span := &one.spans[number%useSpans]
	if span.number != number {
		span.number, span.events = number, 0
	}
	span.events += n
}

// list returns what came, by input and topic.
func (u *uses) list(now time.Time) []Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	number := now.UnixNano() / int64(useSpan)
	seconds := (useSpan*(useSpans-1) + time.Duration(now.UnixNano()%int64(useSpan))).Seconds()
	all := make([]Use, 0, len(u.known))
	for of, one := range u.known {
		lately := uint64(0)
		for _, span := range one.spans {
			if span.number > number-useSpans && span.number <= number {
				lately += span.events
			}
		}
		all = append(all, Use{of.input, of.topic, one.last.UTC(), one.events, float64(lately) / seconds})
	}
	slices.SortFunc(all, func(a, b Use) int { return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.Topic, b.Topic)) })
	return all
}

// Uses returns what comes by which input, since the pool began.
func (p *Pool) Uses() []Use { return p.uses.list(time.Now()) }
