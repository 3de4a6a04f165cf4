package derived

import (
	"fmt"
	"maps"
	"math/rand/v2"
)

// worker is a process that examines and sums shards. Each of next is a statement; between two
// of them it may die.
type worker struct {
	w     *world
	next  []func()
	lease int // of the drop that it is at; 0: none
}

// step runs a statement of the worker, which begins a shard, or all of them, when nothing is
// under way.
func (k *worker) step(shard int, sum, all bool) {
	if len(k.next) == 0 {
		switch {
		case sum:
			k.next = k.sum(shard)
		case all:
			k.next = k.together()
		default:
			k.next = k.examine(shard)
		}
		return
	}
	f := k.next[0]
	k.next = k.next[1:]
	f()
}

// together is examine of all shards: one statement marks what rows of any of them are or make,
// and each shard's position follows.
func (k *worker) together() []func() {
	var marks, positions []func()
	for shard := range shards {
		if more := k.examine(shard); len(more) == 3 {
			marks, positions = append(marks, more[0]), append(positions, more[1:]...)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	return append([]func(){func() {
		for _, f := range marks {
			f()
		}
	}}, positions...)
}

// complete examines and sums all of a shard.
func (k *worker) complete(shard int) {
	for _, begin := range []func(int) []func(){k.examine, k.sum} {
		for more := begin(shard); len(more) > 0; more = begin(shard) {
			for _, f := range more {
				f()
			}
		}
	}
}

// dropping are the steps of a drop of what was derived: a lease, which shards are gone, the drop,
// and the lease is given back.
func (k *worker) dropping(drop func(gone map[int]bool)) []func() {
	w := k.w
	var gone map[int]bool
	take := func() {
		if !w.DropUnleased {
			w.changes++
			k.lease = w.changes
			w.leases[k.lease] = true
		}
	}
	see := func() { gone = maps.Clone(w.dropped) }
	give := func() {
		if !w.DropUnleased {
			w.changes++
			delete(w.leases, k.lease)
			k.lease = 0
		}
	}
	if w.GoneUnleased {
		return []func(){see, take, func() { drop(gone) }, give}
	}
	return []func(){take, see, func() { drop(gone) }, give}
}

// examine reads positions, and returns the statements.
func (k *worker) examine(shard int) []func() {
	w := k.w
	if w.dropped[shard] {
		return nil
	}
	if w.examined[shard].pos > 0 && w.looked(shard) == 0 {
		return k.dropping(func(gone map[int]bool) { w.dropDerived(shard, gone) })
	}
	if w.examined[shard].epoch == 0 {
		return []func(){func() {
			if w.examined[shard].epoch == 0 {
				w.epochs++
				w.examined[shard] = examined{epoch: w.epochs}
			}
		}}
	}
	epoch := w.examined[shard].epoch
	from, to := w.looked(shard), w.head(shard)
	if from == to {
		return nil
	}
	rows := w.upTo(shard, to)
	if w.PositionSkipped {
		from++
	}
	marks := func() {
		if w.MarkTakenBack {
			for r := range w.marks {
				if r.shard == shard {
					delete(w.marks, r)
				}
			}
		}
		for r, first := range w.repeats(func(r row) bool { return r.shard == shard && r.pos > from && r.pos <= to }, all) {
			w.marks[r] = first
			delete(w.copies, r) // of an event that came after the drop, and is there
		}
	}
	// The position is one statement of two steps: what it asserts is read, and later it is stored.
	asserted := func() {
		if e := w.examined[shard]; w.EpochUnasserted || e.epoch == epoch {
			w.underWay[k] = stating{shard, examined{to, rows, epoch}}
		}
	}
	stored := func() { w.store(k) }
	if w.PositionFirst {
		return []func(){asserted, stored, marks}
	}
	return []func(){marks, asserted, stored}
}

// sum reads positions, and returns the statements.
func (k *worker) sum(shard int) []func() {
	w := k.w
	if w.dropped[shard] {
		return nil
	}
	if w.sums[shard].pos > 0 && !w.exact(shard) {
		return k.dropping(func(gone map[int]bool) {
			if !gone[shard] {
				delete(w.sums, shard)
			}
		})
	}
	from, to := w.sums[shard].pos, w.looked(shard)
	if to <= from {
		return nil
	}
	return []func(){func() {
		s := w.sums[shard]
		if w.dropped[shard] || !w.FillUnasserted && s.pos != from || !w.UnexaminedFilled && w.examined[shard].pos < to {
			return
		}
		for _, r := range w.rows {
			if r.shard != shard || r.pos <= from || r.pos > to {
				continue
			}
			if _, again := w.marks[r]; again {
				s.repeats++
			} else {
				s.n, s.delta = s.n+1, s.delta+r.delta
			}
		}
		s.pos = max(s.pos, to)
		w.sums[shard] = s
	}}
}

// Bounds of a schedule.
const (
	shards    = 3
	minCauses = 4
	workers   = 3
	steps     = 120
)

// Run plays the schedule of a seed, and reports the first answer that is not that of the rows.
func Run(seed uint64, m Mutants) error {
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(m)
	team := make([]*worker, workers)
	for i := range team {
		team[i] = &worker{w: w}
	}
	ids, dropAt := 0, r.IntN(2*steps) // in every other schedule
	janitor := &retention{w: w}
	// In few shards workers meet more often; of many causes few rows are copies.
	width, causes := 1+int(seed%shards), minCauses<<(seed%4)
	for step := range steps {
		shard := r.IntN(width)
		if step == dropAt { // retention waits until all is derived
			for range 2 {
				for s := range shards {
					(&worker{w: w}).complete(s)
				}
			}
			janitor.next = nil
			janitor.step(shard)
			janitor.step(shard)
			continue
		}
		switch n := r.IntN(23); {
		case n < 4 && w.dropped[shard]: // no row comes any more
		case n < 4: // an insert: some rows of one position, some of them copies
			pos := w.head(shard) + 1
			for range 1 + r.IntN(3) {
				ids++
				w.rows = append(w.rows, row{cause: r.IntN(causes), ts: r.IntN(50), id: ids, delta: 1 << r.IntN(20), shard: shard, pos: pos})
			}
		case n == 20 && !w.dropped[shard] && w.head(shard) > 0: // a repair adds a row that was missing, and may die before it drops what was derived
			ids++
			w.rows = append(w.rows, row{cause: r.IntN(causes), ts: r.IntN(50), id: ids, delta: 1 << r.IntN(20), shard: shard, pos: 1 + r.IntN(w.head(shard))})
			if r.IntN(2) == 0 {
				w.dropDerived(shard, w.dropped)
			}
		case n > 20:
			janitor.step(shard)
		case n == 4:
			w.erase(shard, r.IntN(causes))
		case n == 5: // a process dies, and another begins; ClickHouse ends what it runs, or died too
			dead := team[r.IntN(workers)]
			if dead.next = nil; r.IntN(2) == 0 {
				w.store(dead)
			}
			delete(w.underWay, dead)
			dead.lease = 0 // it stands until it lapses
			if r.IntN(2) == 0 {
				clear(w.leases)
				for _, k := range team {
					if k.lease > 0 {
						w.leases[k.lease] = true
					}
				}
			}
		default:
			team[r.IntN(workers)].step(shard, r.IntN(2) == 0, r.IntN(3) == 0)
		}
		if got, want := w.read(shards), w.truth(); got != want {
			return fmt.Errorf("seed %d, step %d: a report says %d, the rows %d", seed, step, got, want)
		}
	}
	return nil
}
