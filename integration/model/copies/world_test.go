package copies

import (
	"fmt"
	"maps"
	"math/rand/v2"
)

// Mutant is a guard that is taken away.
type Mutant string

// The mutants.
const (
	None Mutant = ""
	// AckFirst acknowledges an erasure before its copy is written.
	AckFirst Mutant = "acknowledged before the copy"
	// SinkBlind stores rows by the bucket's ledger alone.
	SinkBlind Mutant = "rows restored without the ledger"
	// Absence leaves nothing in the copies of what is forgotten.
	Absence Mutant = "a tombstone as an absence"
	// NoMark takes an erasure for applied wherever the ledger says that it ended.
	NoMark Mutant = "no mark beside the rows"
	// TakeFirst takes the row before ClickHouse's copy has the entry.
	TakeFirst Mutant = "the row taken before the note"
)

// Mutants are all of them.
var Mutants = []Mutant{AckFirst, SinkBlind, Absence, NoMark, TakeFirst}

// entry is what a copy has under an id: how often it was written, and what.
type entry struct {
	count   int
	gone    bool // a tombstone
	ended   bool
	applied bool // of ClickHouse's copy
}

type copyOf map[int]entry

// clickHouse is its copy of the ledger and its rows, which a backup has together. stored are
// the frames up to its head.
type clickHouse struct {
	ledger       copyOf
	rows, stored map[int]bool
}

// World is one play.
type World struct {
	rnd                *rand.Rand
	mutant             Mutant
	bucket, copies     copyOf
	ch                 clickHouse
	acked, forgotten   map[int]bool
	oldBucket, oldCopy copyOf
	oldCH              clickHouse
	damaged            int // damages since the copies agreed
	next               int
}

// New makes a world of a seed.
func New(seed uint64, m Mutant) *World {
	w := &World{rnd: rand.New(rand.NewPCG(seed, 3)), mutant: m, bucket: copyOf{}, copies: copyOf{}, acked: map[int]bool{}, forgotten: map[int]bool{}}
	w.ch = empty()
	w.backup()
	return w
}

func empty() clickHouse { return clickHouse{copyOf{}, map[int]bool{}, map[int]bool{}} }

func (c clickHouse) clone() clickHouse {
	return clickHouse{maps.Clone(c.ledger), maps.Clone(c.rows), maps.Clone(c.stored)}
}

func (w *World) backup() {
	w.oldBucket, w.oldCopy, w.oldCH = maps.Clone(w.bucket), maps.Clone(w.copies), w.ch.clone()
}

// crash ends an operation here, sometimes.
func (w *World) crash() bool { return w.rnd.IntN(4) == 0 }

// newest is the ledger as readers and sinks see it.
func (w *World) newest(id int) entry {
	e := w.bucket[id]
	for _, c := range []copyOf{w.copies, w.ch.ledger} {
		if c[id].count > e.count {
			e = c[id]
		}
	}
	return e
}

// write changes the bucket, then its copy. It reports whether both have it.
func (w *World) write(id int, e entry) bool {
	e.count = max(w.bucket[id].count, w.copies[id].count) + 1
	if e.gone {
		delete(w.bucket, id)
	} else {
		w.bucket[id] = e
	}
	if w.mutant == AckFirst && !e.ended && !e.gone {
		w.acked[id] = true
	}
	if w.crash() {
		return false
	}
	if w.copies[id] = e; e.gone && w.mutant == Absence {
		delete(w.copies, id)
	}
	return true
}

// note copies an entry into ClickHouse.
func (w *World) note(id int, applied bool) {
	e := w.bucket[id]
	e.applied = w.ch.ledger[id].applied || applied
	w.ch.ledger[id] = e
}

// Enter stores a person's row, and enters the erasure.
func (w *World) enter() {
	w.next++
	id := w.next
	w.ch.rows[id], w.ch.stored[id] = true, true
	if w.write(id, entry{}) {
		w.acked[id] = true
	}
}

// run carries an erasure out, from wherever it stands.
func (w *World) run(id int) {
	if w.mutant != TakeFirst {
		w.note(id, false)
	}
	if w.crash() {
		return
	}
	delete(w.ch.rows, id)
	if w.crash() {
		return
	}
	w.note(id, true)
	if w.crash() || w.bucket[id].ended {
		return
	}
	if w.write(id, entry{ended: true}) {
		w.note(id, true)
	}
}

// forget takes an erasure that ended out of the ledger: no frame has anything of it any more.
func (w *World) forget(id int) {
	if !w.write(id, entry{gone: true}) {
		return
	}
	w.forgotten[id] = true
	if w.ch.ledger[id] = (entry{count: w.copies[id].count, gone: true}); w.mutant == Absence {
		delete(w.ch.ledger, id)
	}
}

// agree reconciles the bucket with its copies, and adopts from ClickHouse.
func (w *World) agree() {
	for id := 1; id <= w.next; id++ {
		b, c := w.bucket[id], w.copies[id]
		switch {
		case c.count > b.count && c.gone:
			delete(w.bucket, id)
		case c.count > b.count:
			w.bucket[id] = c
		case b.count > c.count:
			w.copies[id] = b
		}
		here := max(w.bucket[id].count, w.copies[id].count)
		switch t := w.ch.ledger[id]; {
		case t.count > here && t.gone:
			delete(w.bucket, id)
			w.copies[id] = t
		case t.count > here:
			t.applied = false
			w.ch.ledger[id], w.bucket[id], w.copies[id] = t, t, t
		case t.count < here && w.copies[id].gone:
			w.ch.ledger[id] = w.copies[id]
		case t.count < here:
			w.note(id, false)
		}
	}
	w.damaged = 0
}

// behind reports whether an erasure that ended is to be carried out again.
func (w *World) behind(id int) bool {
	e := w.newest(id)
	return w.mutant != NoMark && e.ended && !e.gone && !w.ch.ledger[id].applied
}

// sink stores the frame's row where ClickHouse lacks it. Of what was forgotten no frame is left.
func (w *World) sink(id int) {
	e := w.newest(id)
	counted := e.ended || w.ch.ledger[id].applied
	if w.mutant == SinkBlind {
		e = w.bucket[id]
		counted = e.ended
	}
	if w.forgotten[id] || w.ch.stored[id] {
		return
	}
	w.ch.stored[id] = true
	if e.gone || !counted {
		w.ch.rows[id] = true
	}
}

// damage loses one of the three, or restores it from the backup; or the bucket with one other.
func (w *World) damage() {
	if w.damaged > 0 {
		return
	}
	w.damaged++
	older := w.rnd.IntN(2) == 0
	what := w.rnd.IntN(5)
	if what != 1 && what != 2 { // 0, 3, 4
		w.bucket = copyOf{}
		if older {
			w.bucket = maps.Clone(w.oldBucket)
		}
	}
	if what == 1 || what == 3 {
		w.copies = copyOf{}
		if older {
			w.copies = maps.Clone(w.oldCopy)
		}
	}
	if what == 2 || what == 4 {
		w.ch = empty()
		if older {
			w.ch = w.oldCH.clone()
		}
		for id := range w.forgotten { // of what was forgotten nothing tells any more
			delete(w.ch.rows, id)
		}
	}
	if what != 3 {
		return
	}
	for id := range w.acked { // of what NATS alone knew, before a row went, nothing tells
		if w.ch.rows[id] && w.newest(id).count == 0 {
			delete(w.acked, id)
		}
	}
}

// Step does one thing, and reports what is wrong after it.
func (w *World) Step() error {
	id := 1 + w.rnd.IntN(max(w.next, 1))
	there := w.bucket[id].count > 0
	switch w.rnd.IntN(9) {
	case 0:
		if w.next < 4 {
			w.enter()
		}
	case 1, 2:
		if there && w.damaged == 0 {
			w.run(id)
		}
	case 3:
		if there && w.damaged == 0 && w.bucket[id].ended && w.ch.ledger[id].applied && w.rnd.IntN(3) == 0 {
			w.forget(id)
		}
	case 4:
		w.agree()
		for id := 1; id <= w.next; id++ {
			if w.behind(id) {
				w.run(id)
			}
		}
	case 5:
		if id <= w.next {
			w.sink(id)
		}
	case 6:
		if w.damaged == 0 {
			w.backup()
		}
	case 7:
		w.damage()
	}
	return w.check()
}

// check holds what readers see against what was acknowledged.
func (w *World) check() error {
	for id := 1; id <= w.next; id++ {
		e := w.newest(id)
		hidden := e.count > 0 && !e.gone && (!e.ended || w.behind(id))
		if w.acked[id] && w.ch.rows[id] && !hidden {
			return fmt.Errorf("the row of %d is shown", id)
		}
		if w.acked[id] && w.ch.stored[id] && !w.ch.rows[id] && !w.forgotten[id] && e.count == 0 {
			return fmt.Errorf("the row of %d is gone, and no copy knows of an erasure", id)
		}
		if w.forgotten[id] && e.count > 0 && !e.gone {
			return fmt.Errorf("%d was forgotten, and is in the ledger again", id)
		}
	}
	return nil
}
