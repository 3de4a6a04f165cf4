package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/timers/dispatch/wheel"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Stats are a dispatcher's numbers.
type Stats struct {
	// Waiting timers of its lanes, and those of them that are due but blocked.
	Waiting, Blocked int
	// Overdue is how long the first waiting timer has been due; 0: none is.
	Overdue time.Duration
	// Calls that ended since the start.
	Calls []Calls
	// Errors of calls that did not succeed, by what is in the history as error.
	Errors map[string]uint64
}

// Calls are how many calls of a group ended with a result: done, failed, retry, rescheduled. A timer that was too
// late counts as failed.
type Calls struct {
	GroupID
	Result timer.Op
	Count  uint64
}

// maxCounted bounds the results of groups that are counted apart; those of further groups are under OtherGroup. One
// is some 150 bytes.
const maxCounted = 1000

// OtherGroup stands for the groups above a bound. No group has such a name.
const OtherGroup = "(other)"

type stats struct {
	mu    sync.Mutex
	lanes map[laneID]laneStats
	asks  map[laneID]asked
	// calls by result, for at most maxCounted groups' results, and errors by their name.
	calls  map[callsOf]uint64
	errors map[string]uint64
}

type callsOf struct {
	GroupID
	result timer.Op
}

type laneStats struct {
	waiting, blocked int
	first            int64
}

// Stats returns the numbers as they are now.
func (d *Dispatcher) Stats() Stats {
	now := d.clock.Passed()
	d.stats.mu.Lock()
	defer d.stats.mu.Unlock()
	s := Stats{Errors: maps.Clone(d.stats.errors), Calls: make([]Calls, 0, len(d.stats.calls))}
	for of, n := range d.stats.calls {
		s.Calls = append(s.Calls, Calls{of.GroupID, of.result, n})
	}
	slices.SortFunc(s.Calls, func(a, b Calls) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), strings.Compare(a.Group, b.Group), strings.Compare(string(a.Result), string(b.Result)))
	})
	for _, l := range d.stats.lanes {
		s.Waiting += l.waiting
		s.Blocked += l.blocked
		if l.first > 0 && l.first < now {
			s.Overdue = max(s.Overdue, time.Duration(now-l.first))
		}
	}
	return s
}

func (s *stats) set(id laneID, w *wheel.Wheel, waiting parked) {
	var l laneStats
	l.waiting = w.Len()
	l.first, _ = w.Next()
	for _, p := range waiting {
		l.blocked += p.Len()
		if due, ok := p.Next(); ok && (l.first == 0 || due < l.first) {
			l.first = due
		}
	}
	l.waiting += l.blocked
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes == nil {
		s.lanes = map[laneID]laneStats{}
	}
	s.lanes[id] = l
}

// forget removes what a lane entered that is asked through ask. The entries of its next run stay.
func (s *stats) forget(id laneID, ask chan chan<- census) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of, ok := s.asks[id]; ok && of.ask != ask {
		return
	}
	delete(s.lanes, id)
	delete(s.asks, id)
}

// answers enters a lane that can be asked.
func (s *stats) answers(l asked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks == nil {
		s.asks = map[laneID]asked{}
	}
	s.asks[l.laneID] = l
}

func (s *stats) toAsk() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.asks))
}

func (s *stats) called(r *timer.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls, s.errors = map[callsOf]uint64{}, map[string]uint64{}
	}
	of := callsOf{GroupID{r.Key.Topic, r.Key.Group}, r.Op}
	if _, ok := s.calls[of]; !ok && len(s.calls) >= maxCounted {
		of.GroupID = GroupID{Group: OtherGroup}
	}
	s.calls[of]++
	if r.Call.Error != "" {
		s.errors[r.Call.Error]++
	}
}
