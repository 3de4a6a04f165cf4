package keyed

import (
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// router is what a router holds between its batches; the zero value has yet to begin.
type router struct {
	began bool
	at    int // commits that there were
	cp    routed
	given *schemas.Given
}

// begin loads the checkpoint, fences others off, and reads the parts.
func (r *router) begin(w *World) {
	memory := r.given
	*r = router{began: true, given: &schemas.Given{}}
	read := len(w.commits)
	if w.breaks == Unfenced { // others commit between this read and the fence
		read = max(0, read-1-w.rng.IntN(2))
	}
	r.cp = w.last()
	r.cp.parts = nil
	w.commits = append(w.commits, r.cp) // the fence
	r.at = len(w.commits)
	if w.breaks == InMemory {
		if memory != nil {
			r.given = memory
		}
		return
	}
	keep := int64(schemas.GivenFor)
	if w.breaks == ForgetsEarly {
		keep = int64(pressed)
	}
	routed := int64(0) // when the last message that was routed was stored: the janitor's measure
	if r.cp.source > 0 {
		routed = w.events[r.cp.source-1].at
	}
	if w.breaks == Expires {
		routed = w.now
	}
	for _, c := range w.commits[:read] {
		if routed-c.at < keep {
			for _, p := range c.parts {
				r.given.Take(p)
			}
		}
	}
}

// run routes a few messages; dies has the router end before its commit, or before it knows that it committed.
func (r *router) run(w *World, n int, dies bool) {
	if !r.began || r.at != len(w.commits) { // another one fenced it off
		r.begin(w)
	}
	next := r.cp
	next.windows = append(checkpoint.Windows{}, r.cp.windows...)
	next.parts, next.at = nil, w.now
	var stored []message
	for ; n > 0 && next.source < len(w.events); n-- {
		m := w.events[next.source]
		if next.source++; m.gone {
			continue
		}
		p := schemas.GivenPart{Month: month, Part: m.part, At: m.at}
		switch {
		case w.breaks != EventsAlone && r.given.Has(p):
			w.Seen["known by its part"]++
			if w.breaks != WindowsUntaken {
				next.windows = next.windows.TakeRefused(m.frame, uint64(next.source))
			}
		case next.windows.Check(m.frame) != checkpoint.Fresh:
			w.Seen["known by its window"]++
		default:
			next.windows = next.windows.Take(m.frame, uint64(next.source))
			stored = append(stored, m)
			r.given.Take(p)
			next.parts = append(next.parts, p)
		}
	}
	if next.source == r.cp.source {
		return
	}
	half := dies && w.rng.IntN(2) == 0
	if dies && !half {
		*r = router{}
		return
	}
	if w.breaks == AfterTheBatch && half {
		next.parts = nil
	}
	w.commits = append(w.commits, next)
	for _, m := range stored {
		for i := m.part.From; i < m.part.To; i++ {
			m.of.req.stored[i]++
		}
	}
	if r.cp, r.at = next, len(w.commits); half {
		*r = router{}
	}
}
