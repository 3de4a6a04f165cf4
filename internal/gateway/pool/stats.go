package pool

import (
	"maps"
	"slices"

	"github.com/almanac-events/almanac/producer"
)

// maxPast bounds the topics whose earlier producers are remembered; past it all are forgotten, and their counts begin again.
const maxPast = 1000

// InFlight returns the bytes that requests under way hold, and how many they may.
func (p *Pool) InFlight() (held, limit int64) { return p.held.Load(), p.cfg.InFlight }

// Stats returns what became of the events of each topic since the pool began. A topic whose producer was replaced goes on
// counting.
func (p *Pool) Stats() map[string]producer.Stats {
	p.mu.Lock()
	all := maps.Clone(p.past)
	live := slices.Collect(maps.Keys(p.leaving))
	for _, s := range p.slots {
		live = append(live, s)
	}
	live = slices.DeleteFunc(live, func(s *slot) bool { return !isClosed(s.made) || s.p == nil })
	p.mu.Unlock()
	for _, s := range live {
		all[s.topic.Name] = added(all[s.topic.Name], s.p.Stats())
	}
	return all
}

// remember keeps the counts of a producer that ended.
func (p *Pool) remember(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leaving, s)
	if s.p == nil {
		return
	}
	if len(p.past) >= maxPast {
		clear(p.past)
	}
	was := added(p.past[s.topic.Name], s.p.Stats())
	was.Buffered, was.BufferedBytes, was.InFlight, was.OldestUnanswered = 0, 0, 0, 0
	p.past[s.topic.Name] = was
}

// added is the sum of two producers' counts, and the worse of their ages.
func added(a, b producer.Stats) producer.Stats {
	b.Logged += a.Logged
	b.Stored += a.Stored
	b.Resent += a.Resent
	b.Frames += a.Frames
	b.Refused += a.Refused
	b.Buffered += a.Buffered
	b.BufferedBytes += a.BufferedBytes
	b.InFlight += a.InFlight
	b.OldestUnanswered = max(a.OldestUnanswered, b.OldestUnanswered)
	dropped := maps.Clone(a.Dropped)
	if dropped == nil {
		dropped = map[string]uint64{}
	}
	for cause, n := range b.Dropped {
		dropped[cause] += n
	}
	b.Dropped = dropped
	return b
}
