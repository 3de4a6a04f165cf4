package dispatch

import (
	"maps"
	"sync"
	"time"

	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers/dispatch/wheel"
)

// Stats are a dispatcher's numbers.
type Stats struct {
	// Waiting timers of its lanes, and those of them that are due but blocked.
	Waiting, Blocked int
	// Overdue is how long the first waiting timer has been due; 0: none is.
	Overdue time.Duration
	// Calls by result: done, failed, retry, rescheduled.
	Calls map[timer.Op]uint64
}

type stats struct {
	mu    sync.Mutex
	lanes map[laneID]laneStats
	calls map[timer.Op]uint64
}

type laneStats struct {
	waiting, blocked int
	first            int64
}

// Stats returns the numbers as they are now.
func (d *Dispatcher) Stats() Stats {
	now := d.clock.now()
	d.stats.mu.Lock()
	defer d.stats.mu.Unlock()
	s := Stats{Calls: maps.Clone(d.stats.calls)}
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

func (s *stats) forget(id laneID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lanes, id)
}

func (s *stats) called(r *timer.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[timer.Op]uint64{}
	}
	s.calls[r.Op]++
}
