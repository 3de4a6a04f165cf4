package dispatch

import (
	"math"

	"github.com/almanac-events/almanac/internal/timers/dispatch/wheel"
)

// parked are due entries that cannot begin, by what blocks them. They keep the order of their due times, so
// that one that loses a free place to another lane does not fall behind later ones.
type parked map[blocker]*wheel.Wheel

// add sets an entry aside until what blocks it may have changed.
func (p parked) add(by blocker, e wheel.Entry) {
	w := p[by]
	if w == nil {
		w = wheel.New()
		p[by] = w
	}
	w.Put(e)
}

// release puts entries back on the wheel, those that are due first before the others: of each blocker as
// many as free says.
func (p parked) release(to *wheel.Wheel, free func(blocker) int) {
	for by, w := range p {
		for range min(free(by), w.Len()) {
			e, _ := w.Take(math.MaxInt64)
			to.Put(e)
		}
		if w.Len() == 0 {
			delete(p, by)
		}
	}
}
