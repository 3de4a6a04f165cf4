package front

import "slices"

// ask is one request to a server: the part stops before it, and may end there.
type ask func() bool

// keys are the documents, settle and patience steps: a record stays so long, a write takes
// at most so long.
const (
	keys    = 3
	resolve = 150
	maxWait = 120
)

// writer makes one call until it knows what became of it.
func (w *world) writer(key int, remove bool, next ask) {
	w.calls++
	call := w.calls
	began, blind := 0, w.rnd.IntN(4) == 0
	for tries := 0; tries < 20; tries++ {
		if !next() {
			return
		}
		last := w.last(key)
		had := w.lastSeq
		if tries == 0 && !remove && blind { // a create without a look: it knows an end from before
			last = message{}
			if !next() {
				return
			}
		}
		there := last.seq > 0 && !last.removed
		if remove && !there {
			return
		}
		m := w.following(last, key, call, remove)
		m.nonce += tries
		expect := last.seq
		if w.has(NoExpectation) {
			expect = -1
		}
		began = w.steps
		if !next() { // it may sleep here for as long as it likes
			return
		}
		told, known := w.send(m, expect, had, began, next)
		switch {
		case told.seq > 0:
			w.told = append(w.told, told)
			return
		case !known:
			return // the caller is told that it is not known
		}
	}
}

// send puts a message until it is known what became of it: the row it becomes, or that
// nothing was written. The front had a sequence before.
func (w *world) send(m message, expect, had, began int, next ask) (told row, known bool) {
	told = row{m.key, m.version, m.life, m.call, 0, m.removed}
	for unsure := false; ; unsure = true {
		took := w.put(m, expect, false)
		if w.rnd.IntN(6) > 0 { // the answer came
			if told.seq = w.lastSeq; !took {
				told.seq = 0
			}
			return told, took || !unsure // refused after a try of which nothing is known
		}
		w.faults[1]++
		if w.has(SilenceIsRefused) {
			return row{}, true
		}
		if !next() || w.steps-began > maxWait {
			return row{}, false
		}
		if w.has(HadLate) {
			had = w.lastSeq
		}
		f, ok := w.first(m.key, expect+1)
		switch {
		case ok && f.nonce == m.nonce:
			told.seq = f.seq
			return told, true
		case ok && f.kind != record && f.row > max(expect, had):
			return row{}, false // a cleaner replaced what came
		case ok:
			return row{}, true
		}
		if !next() || w.steps-began > maxWait {
			return row{}, false
		}
	}
}

// mover routes the lane, record by record.
func (w *world) mover(next ask) {
	if !next() {
		return
	}
	w.epoch++
	mine, at := w.epoch, w.checkpoint
	for next() {
		var some []message
		for _, m := range w.front {
			if m.seq > at && len(some) < 3 {
				some = append(some, m)
			}
		}
		if len(some) == 0 {
			continue
		}
		if !next() {
			return
		}
		if mine != w.epoch && !w.has(NoCheckpointExpectation) {
			return
		}
		for _, m := range some {
			switch {
			case m.kind == stub && !w.has(RoutesStubs), m.kind == refresh && !w.has(RoutesRefreshes):
			default:
				w.frames = append(w.frames, row{m.key, m.version, m.life, m.call, m.seq, m.removed})
			}
		}
		at = some[len(some)-1].seq
		w.checkpoint = at
	}
}

// sink stores the frames in order.
func (w *world) sink(next ask) {
	for next() {
		if len(w.table) < len(w.frames) {
			w.table = append(w.table, w.frames[len(w.table)])
		}
	}
}

// cleaner takes out what may leave, round after round.
func (w *world) cleaner(next ask) {
	for next() {
		upTo, now := w.archived(), w.steps
		if w.has(NoArchived) {
			upTo = w.lastSeq
		}
		if !next() {
			return
		}
		var seen [keys][]message
		end := 0 // the walk met all up to here
		for _, m := range w.front {
			old := now-m.at >= resolve || w.has(NoResolve)
			if m.seq <= upTo && old {
				end = m.seq
			}
			if m.kind != stub && m.seq <= upTo && old {
				seen[m.key] = append(seen[m.key], m)
			}
		}
		if !next() {
			return
		}
		var all [keys]bool // each row came back
		for key := range seen {
			all[key] = true
			for _, m := range seen[key] {
				all[key] = all[key] && (w.stored(m) || w.has(NoGate))
			}
		}
		for key := range seen {
			if len(seen[key]) == 0 || !all[key] {
				continue
			}
			if !next() {
				return
			}
			last := seen[key][len(seen[key])-1]
			if now := w.last(key); now.seq > end && !w.has(NoLater) {
				last = now
			}
			if !next() {
				return
			}
			w.leave(seen[key], last, w.rnd.IntN(3) == 0)
		}
	}
}

// leave is package cleaner's decide, and what follows from it.
func (w *world) leave(seen []message, last message, hot bool) {
	newest := seen[len(seen)-1]
	again := last
	again.call, again.nonce = 0, -w.steps
	expect := last.seq
	if w.has(NoStubExpectation) {
		expect = -1
	}
	switch {
	case last.seq == 0 || last.seq < newest.seq:
	case last.seq > newest.seq:
		upTo := newest.seq
		if w.has(PurgesAll) {
			upTo = last.seq
		}
		w.purge(newest.key, upTo)
	case last.removed:
		w.purge(last.key, last.seq)
	case hot && len(seen) > 1:
		again.kind = refresh
		w.put(again, expect, true)
	case hot:
	case w.has(NoStub):
		w.purge(last.key, last.seq)
	default:
		again.kind = stub
		if w.put(again, expect, true) && !w.stored(last) {
			w.fail("document %d became a stub, and version %d has no row", last.key, last.version)
		}
	}
}

// passed is where a reader has looked: no record above stored is up to end.
type passed struct{ stored, end int }

// reader lists all documents, some times after each of some snapshots of the head and the
// checkpoint. It remembers where the front had nothing above what is stored.
func (w *world) reader(next ask) {
	var ground passed
	for range 1 + w.rnd.IntN(3) {
		if !next() {
			return
		}
		early, before := w.visible(), len(w.told) // for a list that reads the table before its snapshot
		if w.has(ReadsTableFirst) && !next() {
			return
		}
		head := len(w.table)
		if !next() {
			return
		}
		upTo := min(w.checkpoint, w.storedBelow(head))
		for range 1 + w.rnd.IntN(3) {
			if !next() {
				return
			}
			if !w.has(ReadsTableFirst) {
				early, before = nil, len(w.told)
			}
			if !w.list(upTo, &ground, early, before, next) {
				return
			}
		}
	}
}

// list reads what the front has above a snapshot, and the table, in any order. It must find
// what was acknowledged before it began.
func (w *world) list(upTo int, ground *passed, found []row, before int, next ask) (more bool) {
	found = slices.Clone(found)
	table := func() bool {
		found = append(found, w.visible()...)
		return next()
	}
	tableFirst := w.rnd.IntN(2) == 0
	if tableFirst && !w.has(ReadsTableFirst) && !table() {
		return false
	}
	end, from := w.lastSeq, upTo
	if ground.stored <= upTo && ground.end > from {
		from = ground.end
	}
	for range 1 + w.rnd.IntN(2)*w.rnd.IntN(resolve/2) { // it may take long
		if !next() {
			return false
		}
	}
	var newest [keys]message
	left, records := false, false // the front, above what the snapshot knows as stored
	for _, m := range w.front {
		switch {
		case m.seq <= from:
		case m.kind == stub:
			left = left || m.row > upTo
		default:
			records = true
			if m.row > newest[m.key].row {
				newest[m.key] = m
			}
			found = append(found, row{key: m.key, version: m.version, life: m.life, seq: m.row})
		}
	}
	if !next() {
		return false
	}
	if w.has(RemembersLate) {
		end = w.lastSeq
	}
	if !records && !left {
		*ground = passed{upTo, end}
	}
	if !w.has(ReadsTableFirst) && (!tableFirst || left && !w.has(PassesStubs)) && !table() {
		return false
	}
	for _, t := range w.told[:before] {
		if !w.marked[w.shardOf(t.seq)] && !w.listed(t, found) {
			w.fail("a list lacks document %d at version %d, which was acknowledged before it began", t.key, t.version)
		}
	}
	stored := w.living(found, newest)
	if !next() {
		return false
	}
	for _, r := range stored {
		if last := w.last(r.key); !w.has(NoLook) && (last.seq == 0 || last.removed || last.life != r.life) {
			continue
		}
		for _, t := range w.told[:before] {
			if t.removed && t.key == r.key && t.life == r.life && t.version > r.version {
				w.fail("a list has document %d at version %d, and its removal was acknowledged before it began", r.key, r.version)
			}
		}
	}
	return true
}

// living are the documents that a list takes from the table: the newest rows of their lives, but
// for those of which the front has a newer record, and those that end a life.
func (w *world) living(found []row, newest [keys]message) (out []row) {
	type life struct{ key, life int }
	last := map[life]row{}
	for _, r := range found {
		if was := last[life{r.key, r.life}]; r.call != 0 && r.seq > was.seq { // those of the front have no call
			last[life{r.key, r.life}] = r
		}
	}
	for _, r := range last {
		if !r.removed && newest[r.key].row <= r.seq {
			out = append(out, r)
		}
	}
	return out
}

// listed reports whether a list of what was found tells of an acknowledged version or of a
// newer one. Where the document was removed after it, the list need not: the front has nothing
// of it, or a life that began later.
func (w *world) listed(t row, found []row) bool {
	after := func(r row) bool { return r.key == t.key && r.seq >= t.seq } // the highest sequence is the newest
	return slices.ContainsFunc(found, after) || slices.ContainsFunc(w.table, func(r row) bool { return after(r) && r.removed })
}
