package positions

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// The guards. A mutant goes without one.
const (
	ofItsFrame    = "rows carry their frame's position: without it all carry the last of the insert"
	numberedFirst = "rows are numbered before they are filtered"
	ofNoOther     = "a frame begins at its first row: without it a row carries the position before"
	refusesItself = "an insert that lacks a row refuses itself"
	assertsHead   = "an insert asserts the head"
	floorRead     = "a head below the end of an insert is read with the floor"
	struck        = "a sink leaves out what was erased"
	floorFirst    = "the floor is raised before the rows that carry the head go"
	toTheBound    = "an erasure takes rows up to its bound"
	byPosition    = "whether ClickHouse lacks rows below the floor is told by position"
)

// row is an event: its id, and whether it is of the person who is erased.
type row struct {
	id   int
	gone bool
}

// stored is a row in ClickHouse.
type stored struct {
	row
	pos int
}

// world is one shard: its frames in SHARDS by position-1, its rows in ClickHouse, and what the
// registry has of it.
type world struct {
	rng    *rand.Rand
	off    string // the guard that is off
	frames [][]row
	table  []stored
	tokens map[token]bool
	older  *copied
	floor  int
	sinks  [2]sink
	erasure
	damaged map[int]bool // ids of rows that ClickHouse lost at some time
	next    int
}

// token names an insert's predecessor and an attempt.
type token struct{ head, attempt int }

// copied is an older copy of ClickHouse.
type copied struct {
	table  []stored
	tokens map[token]bool
}

// erasure is the one of the run.
type erasure struct {
	asked   bool
	bound   int
	cuts    map[int]int // rows that are gone, or go, by position; nil: not counted yet
	floored bool
	ended   bool
	again   bool // ClickHouse was restored: what it brought back is taken again
}

func newWorld(seed uint64, off string) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 1)), off: off, damaged: map[int]bool{}, tokens: map[token]bool{}}
}

// has reports whether a guard is there.
func (w *world) has(guard string) bool { return w.off != guard }

// one in n.
func (w *world) one(n int) bool { return w.rng.IntN(n) == 0 }

// max is the highest position that rows carry.
func (w *world) max() (pos int) {
	for _, r := range w.table {
		pos = max(pos, r.pos)
	}
	return pos
}

// head is the position up to which all is stored, and how much of it no row shows.
func (w *world) head() (head, absent int) {
	pos := w.max()
	if w.floor <= pos || w.lacks(pos) {
		return pos, 0
	}
	return w.floor, w.floor - pos
}

// lacks reports whether frames above a position, up to the floor, have rows that no erasure took.
func (w *world) lacks(pos int) bool {
	from, have := pos, 0
	if !w.has(byPosition) { // by the count of all rows
		from, have = 0, len(w.table)
	}
	brought := 0
	for at := from + 1; at <= w.floor; at++ {
		brought += len(w.frames[at-1]) - w.cuts[at]
	}
	return have < brought
}

// left are the rows of a frame that may be stored: the ledger covers it or does not.
func (w *world) left(pos int) (out []row) {
	covered := w.ended && pos <= w.bound && w.has(struck)
	for _, r := range w.frames[pos-1] {
		if !covered || !r.gone {
			out = append(out, r)
		}
	}
	return out
}

// accept has the router add a frame.
func (w *world) accept() {
	var f []row
	whole := w.one(3) // of one person
	for range 1 + w.rng.IntN(3) {
		w.next++
		f = append(f, row{w.next, whole && w.one(2) || w.one(3)})
	}
	if whole {
		for i := range f {
			f[i].gone = f[0].gone
		}
	}
	w.frames = append(w.frames, f)
}

// erase takes the next step of the erasure, and of what a restored copy asks of it again.
func (w *world) erase() {
	head, _ := w.head()
	mine := func(r stored) bool { return r.gone && (r.pos <= w.bound || !w.has(toTheBound)) }
	switch {
	case !w.asked || head < w.bound || w.ended && !w.again:
	case w.cuts == nil:
		w.cuts = map[int]int{}
		for _, r := range w.table {
			if mine(r) {
				w.cuts[r.pos]++
			}
		}
	case !w.floored:
		top := w.max()
		if !slices.ContainsFunc(w.table, func(r stored) bool { return r.pos == top && !mine(r) }) && w.has(floorFirst) {
			w.floor = max(w.floor, top)
		}
		w.floored = true
	case slices.ContainsFunc(w.table, mine):
		w.table = slices.DeleteFunc(slices.Clone(w.table), mine)
		w.floored = false // looked at again
	default:
		w.ended, w.again = true, false
	}
}

// repair stores again, up to the head, what ClickHouse lacks of frames above the floor.
func (w *world) repair() {
	if w.asked && !w.ended {
		return
	}
	var missing []stored
	for pos := w.floor + 1; pos <= w.max(); pos++ {
		kept := w.left(pos)
		for _, r := range w.numbered(pos, pos, true) {
			if slices.Contains(kept, r.row) && !slices.Contains(w.table, r) {
				missing = append(missing, r)
			}
		}
	}
	w.table = append(slices.Clone(w.table), missing...)
}

// damage has ClickHouse lose rows.
func (w *world) damage() {
	if w.asked {
		return // what an erasure counted is not told from what was lost
	}
	w.table = slices.DeleteFunc(slices.Clone(w.table), func(r stored) bool {
		lost := w.one(3)
		w.damaged[r.id] = w.damaged[r.id] || lost
		return lost
	})
}

// play takes steps at random, and then lets all come to rest.
func (w *world) play() error {
	for i := range 120 {
		switch w.rng.IntN(8) {
		case 0, 1:
			if i < 90 {
				w.accept()
			}
		case 2, 3, 4:
			w.sink(w.rng.IntN(2))
		case 5:
			w.erase()
		case 6:
			w.fault(i)
		default:
			if w.one(3) {
				w.repair()
			}
		}
	}
	for range 80 {
		w.sink(0)
		w.sink(1)
		w.erase()
		w.repair()
	}
	return w.evaluate()
}

// fault has an operator or a disk do something.
func (w *world) fault(i int) {
	switch {
	case i > 20 && !w.asked && w.one(2):
		w.asked, w.bound = true, len(w.frames)
	case w.one(4):
		w.older = &copied{w.table, maps.Clone(w.tokens)}
	case w.older != nil && w.one(3):
		w.table, w.tokens, w.again, w.floored = w.older.table, maps.Clone(w.older.tokens), true, false
	case w.one(4):
		w.damage()
	}
}

// evaluate compares the table with the frames.
func (w *world) evaluate() error {
	at := map[stored]int{}
	for _, r := range w.table {
		at[r]++
	}
	for i, f := range w.frames {
		for _, r := range f {
			want, s := 1, stored{r, i + 1}
			if w.asked && r.gone && s.pos <= w.bound {
				want = 0
			}
			if n := at[s]; n != want && !(n == 0 && w.damaged[r.id] && s.pos <= w.floor) {
				return fmt.Errorf("row %d of position %d is stored there %d times, want %d", r.id, s.pos, n, want)
			}
			delete(at, s)
		}
	}
	for r := range at {
		return fmt.Errorf("row %d is at position %d, which is not its frame's", r.id, r.pos)
	}
	for i := range w.sinks {
		if s := &w.sinks[i]; s.head != len(w.frames) {
			return fmt.Errorf("a sink stands at %d, the shard ends at %d", s.head, len(w.frames))
		}
	}
	return nil
}
