package timers

import (
	"fmt"
	"math/rand/v2"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Play plays one seed and returns what is wrong; empty: nothing is.
func Play(seed uint64, broken Break) string {
	w := &world{rng: rand.New(rand.NewPCG(seed, 17)), broken: broken, rows: map[uint64]bool{}, dead: map[string]bool{}, now: 1}
	clients := []*client{{}, {}}
	dispatchers := []*dispatcher{{}, {}}
	for i, d := range dispatchers {
		d.born(fmt.Sprint("d", i))
	}
	var purge func()
	const chaos, healing = 400, 4000
	for step := 0; step < chaos+healing && w.wrong == ""; step++ {
		if w.quiet = step >= chaos; w.quiet && len(w.late) > 0 {
			w.late[0]()
			w.late = w.late[1:]
			continue
		}
		w.now += w.rng.Int64N(2)
		switch w.rng.IntN(8) {
		case 0:
			clients[w.rng.IntN(len(clients))].step(w)
		case 1:
			w.move()
		case 2:
			if purge != nil {
				purge()
				purge = nil
			} else {
				purge = w.clean(keyOf(w.rng.IntN(keys)))
			}
		case 3:
			if len(w.late) > 0 {
				n := w.rng.IntN(len(w.late))
				w.late[n]()
				w.late = append(w.late[:n], w.late[n+1:]...)
			}
		default:
			n := w.rng.IntN(len(dispatchers))
			if w.chance(40) {
				w.dead[dispatchers[n].self] = true
				dispatchers[n].born(fmt.Sprint("d", n))
				continue
			}
			dispatchers[n].step(w)
		}
	}
	w.evaluate()
	return w.wrong
}

// evaluate compares the log, the calls and the rows.
func (w *world) evaluate() {
	before := map[schemas.TimerKey]*entry{}
	for _, e := range w.log {
		w.follows(before[e.Key], e)
		before[e.Key] = e
	}
	for key, e := range before {
		if !e.State().Over() {
			w.fail("timer %s is %s in the end, record %d", key.ID, e.State(), e.Seq)
		}
	}
	for i := range w.calls {
		w.claimed(&w.calls[i])
	}
	for w.routed < len(w.log) && w.wrong == "" {
		w.move()
	}
	if len(w.rows) != len(w.log) {
		w.fail("%d records have %d rows", len(w.log), len(w.rows))
	}
}

// follows holds a record to the one before it.
func (w *world) follows(p, e *entry) {
	state := timer.State("")
	if p != nil {
		state = p.State()
	}
	right := false
	switch e.Op {
	case timer.Created:
		right = state == "" || state.Over()
	case timer.Updated:
		right = state == timer.StatePending && e.Revision == p.Revision+1
	case timer.Cancelled:
		right = state == timer.StatePending || state == timer.StateFiring
	case timer.Firing:
		right = state == timer.StatePending && e.Attempt == p.Attempt+1 || state == timer.StateFiring && e.Attempt == p.Attempt
	case timer.Done, timer.Failed, timer.Retry:
		right = state == timer.StateFiring && e.Attempt == p.Attempt && w.called(e)
	case timer.Rescheduled:
		right = state == timer.StateFailed
	}
	if !right {
		w.fail("record %d (%s, attempt %d) of %s follows %q", e.Seq, e.Op, e.Attempt, e.Key.ID, state)
	}
}

// called reports whether the attempt that a record ends was called before it.
func (w *world) called(e *entry) bool {
	for _, c := range w.calls {
		if c.CallKey() == e.CallKey() && c.after < int(e.Seq) {
			return true
		}
	}
	return false
}

// claimed holds a call to its claim, which must have been stored before it, and to its time.
func (w *world) claimed(c *call) {
	if c.group != c.Key.Group {
		w.fail("%s was called by the settings and the secret of group %q, and is of %q", c.CallKey(), c.group, c.Key.Group)
	}
	if c.at < c.Due {
		w.fail("%s was called at %d, due at %d", c.CallKey(), c.at, c.Due)
	}
	for _, e := range w.log[:c.after] {
		if e.Op == timer.Firing && e.Claim == c.Claim {
			return
		}
	}
	w.fail("%s was called without a claim", c.CallKey())
}
