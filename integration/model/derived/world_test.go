package derived

import (
	"cmp"
	"slices"
)

// Mutants are guards left out.
type Mutants struct {
	// MarkTakenBack: an examination replaces the marks of its shard by those it finds.
	MarkTakenBack bool
	// FillUnasserted: a fill does not assert that the sums end where it begins.
	FillUnasserted bool
	// UnexaminedFilled: a fill does not assert that its rows were examined.
	UnexaminedFilled bool
	// PositionSkipped: an examination begins a position too late.
	PositionSkipped bool
	// EpochUnasserted: a position is written though what it says was dropped meanwhile.
	EpochUnasserted bool
	// RowsUncounted: a position is believed whatever rows the shard has up to it.
	RowsUncounted bool
	// DropUnwaited: what was derived is dropped once, and positions that were asserted before are
	// stored after it.
	DropUnwaited bool
	// PositionFirst: the position is written before the marks.
	PositionFirst bool
	// ErasureBelieved: sums stay after an erasure, and are believed whatever rows there are.
	ErasureBelieved bool
	// FirstForgotten: an erasure drops what was derived of its own shard alone, and not the
	// marks of other shards whose event that counts it took.
	FirstForgotten bool
	// MarksIgnored: sums are believed that left out fewer rows than are marked.
	MarksIgnored bool
	// CountsIgnored: sums are believed that hold more or fewer rows than there are.
	CountsIgnored bool
	// UnquietSums: sums are believed while rows wait to be examined.
	UnquietSums bool
	// LastSumsDropped: what is dropped with the event that counts includes the sums of a shard
	// whose rows retention dropped.
	LastSumsDropped bool
	// LastMarkDropped: the mark of a copy goes whose event that counts was in a dropped shard.
	LastMarkDropped bool
	// DropUnleased: what drops what was derived holds no lease for retention to see.
	DropUnleased bool
	// GoneUnleased: what drops what was derived reads which shards retention dropped before it takes its lease.
	GoneUnleased bool
	// OthersUnseen: retention drops rows while other shards were not examined.
	OthersUnseen bool
}

// row is a diff as it is stored.
type row struct {
	cause, ts, id int
	delta         int
	shard, pos    int
}

func (r row) before(o row) int { return cmp.Or(cmp.Compare(r.ts, o.ts), cmp.Compare(r.id, o.id)) }

// examined is how far a shard was, and how many rows it had up to there. The epoch is drawn
// when the first examination begins, and goes with all else when it is dropped.
type examined struct{ pos, rows, epoch int }

// stating is a statement that says how far a shard was examined, and is not stored yet.
type stating struct {
	shard int
	examined
}

// sums are a shard's.
type sums struct{ pos, n, repeats, delta int }

// world is what the tables hold.
type world struct {
	Mutants
	rows     []row
	marks    map[row]row // of a repeat, the row that counts
	examined map[int]examined
	sums     map[int]sums
	epochs   int
	underWay map[*worker]stating

	// dropped are shards whose rows retention dropped. Of them the truth is what counted then,
	// and the copies that were known, or were stored when retention looked.
	dropped map[int]bool
	counted int
	copies  map[row]bool

	// leases are of drops of what was derived that are under way, or died and have not lapsed, and
	// changes how often that changed.
	leases  map[int]bool
	changes int
}

func newWorld(m Mutants) *world {
	return &world{Mutants: m, marks: map[row]row{}, examined: map[int]examined{}, sums: map[int]sums{}, underWay: map[*worker]stating{}, dropped: map[int]bool{}, copies: map[row]bool{}, leases: map[int]bool{}}
}

func (w *world) head(shard int) (pos int) {
	for _, r := range w.rows {
		if r.shard == shard {
			pos = max(pos, r.pos)
		}
	}
	return pos
}

// upTo counts the rows of a shard up to a position.
func (w *world) upTo(shard, pos int) (n int) {
	for _, r := range w.rows {
		if r.shard == shard && r.pos <= pos {
			n++
		}
	}
	return n
}

// all selects every row.
func all(row) bool { return true }

// repeats are the rows, of some, that do not count because of others, each with the one that counts.
func (w *world) repeats(because, among func(row) bool) map[row]row {
	causes := map[int]bool{}
	for _, r := range w.rows {
		if because(r) {
			causes[r.cause] = true
		}
	}
	out := map[row]row{}
	for cause := range causes {
		var same []row
		for _, r := range w.rows {
			if r.cause == cause && among(r) {
				same = append(same, r)
			}
		}
		slices.SortFunc(same, row.before)
		for _, r := range same[min(1, len(same)):] {
			out[r] = same[0]
		}
	}
	return out
}

// looked is how far a shard was examined; 0 when it has other rows than it had then.
func (w *world) looked(shard int) int {
	e := w.examined[shard]
	if e.pos > w.head(shard) || !w.RowsUncounted && w.upTo(shard, e.pos) != e.rows {
		return 0
	}
	return e.pos
}

// store ends a worker's statement, if it has one under way.
func (w *world) store(k *worker) {
	if st, ok := w.underWay[k]; ok && st.pos >= w.examined[st.shard].pos {
		w.examined[st.shard] = st.examined
	}
	delete(w.underWay, k)
}

// exact reports whether sums stand for the rows that there are.
func (w *world) exact(shard int) bool {
	s := w.sums[shard]
	marked := 0
	for r := range w.marks {
		if r.shard == shard && r.pos <= s.pos {
			marked++
		}
	}
	switch {
	case s.pos == 0:
		return false
	case w.ErasureBelieved:
		return true
	case w.CountsIgnored:
		return s.repeats == marked
	case w.MarksIgnored:
		return s.n+s.repeats == w.upTo(shard, s.pos)
	}
	return s.n+s.repeats == w.upTo(shard, s.pos) && s.repeats == marked
}

// quiet reports whether all rows were examined.
func (w *world) quiet(shards int) bool {
	for s := range shards {
		if w.looked(s) != w.head(s) {
			return false
		}
	}
	return true
}

// read is the sum of the rows that count, as a report has it.
func (w *world) read(shards int) (total int) {
	quiet := w.quiet(shards)
	found := map[row]row{}
	if !quiet {
		found = w.repeats(func(r row) bool { return r.pos > w.looked(r.shard) }, all)
	}
	for s := range shards {
		from := 0
		if w.dropped[s] {
			total += w.sums[s].delta
			continue
		}
		if (quiet || w.UnquietSums) && w.exact(s) {
			total, from = total+w.sums[s].delta, w.sums[s].pos
		}
		for _, r := range w.rows {
			_, marked := w.marks[r]
			_, again := found[r]
			if r.shard == s && r.pos > from && !marked && !again {
				total += r.delta
			}
		}
	}
	return total
}

// truth is the sum by the rows alone.
func (w *world) truth() (total int) {
	total = w.counted
	for _, r := range w.counting() {
		total += r.delta
	}
	return total
}

// counting are the rows that count.
func (w *world) counting() (out []row) {
	again := w.repeats(all, all)
	for _, r := range w.rows {
		if _, ok := again[r]; !ok && !w.copies[r] {
			out = append(out, r)
		}
	}
	return out
}

// within is what a shard's rows count among those that are known, and which of these are copies
// of its events.
func (w *world) within(shard int, known map[row]bool) (counted int, copies []row) {
	again := w.repeats(all, func(r row) bool { return known[r] })
	for _, r := range w.rows {
		first, ok := again[r]
		if r.shard == shard && !ok && !w.copies[r] {
			counted += r.delta
		}
		if ok && first.shard == shard {
			copies = append(copies, r)
		}
	}
	return counted, copies
}

// drop takes the rows of a shard, as retention does, which saw what they count and some of their
// copies when it looked. Other rows, unless they are marked by now, are as if they came after it:
// of two with one cause both count.
func (w *world) drop(shard, counted int, copies []row) {
	w.counted += counted
	for r, first := range w.marks {
		if first.shard == shard {
			copies = append(copies, r)
		}
	}
	for _, r := range copies {
		w.copies[r] = true
	}
	w.dropped[shard] = true
	w.rows = slices.DeleteFunc(w.rows, func(r row) bool { return r.shard == shard })
}

// dropDerived drops what was derived of a shard, and of those with repeats of its events. gone
// are the shards of which it knows that retention dropped their rows.
func (w *world) dropDerived(shard int, gone map[int]bool) {
	if gone[shard] {
		return
	}
	if !w.DropUnleased {
		w.changes++
	}
	drop := map[int]bool{shard: true}
	for r, first := range w.marks {
		if first.shard == shard && !w.FirstForgotten && (!gone[r.shard] || w.LastSumsDropped) {
			drop[r.shard] = true
		}
	}
	for s := range drop {
		for r, first := range w.marks {
			last := gone[first.shard] && slices.Contains(w.rows, r) && !w.LastMarkDropped
			if r.shard == s && !last {
				delete(w.marks, r)
			}
		}
		for k, st := range w.underWay {
			if st.shard == s && !w.DropUnwaited {
				w.store(k)
			}
		}
		delete(w.examined, s)
		if !w.ErasureBelieved {
			delete(w.sums, s)
		}
	}
}

// erase takes rows of a cause out of a shard.
func (w *world) erase(shard, cause int) {
	n := len(w.rows)
	w.rows = slices.DeleteFunc(w.rows, func(r row) bool { return r.shard == shard && r.cause == cause })
	if len(w.rows) < n {
		w.dropDerived(shard, w.dropped)
	}
}
