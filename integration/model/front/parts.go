package front

// ask is one request to a server: the part stops before it, and may end there.
type ask func() bool

// keys are the documents, settle and patience steps: a record stays so long, a write takes
// at most so long.
const (
	keys     = 3
	settle   = 150
	patience = 120
)

// writer makes one call until it knows what became of it.
func (w *world) writer(key int, remove bool, next ask) {
	w.calls++
	call := w.calls
	began := 0
	for tries := 0; tries < 20; tries++ {
		if !next() {
			return
		}
		last := w.last(key)
		there := last.seq > 0 && !last.removed
		if remove && !there {
			return
		}
		m := message{key: key, kind: record, version: last.version + 1, life: last.life, call: call, nonce: call*100 + tries, removed: remove}
		if last.seq == 0 {
			m.life, m.version = call, 1 // the time of its creation, in a record
		}
		expect := last.seq
		if w.has(NoExpectation) {
			expect = -1
		}
		began = w.steps
		if !next() { // it may sleep here for as long as it likes
			return
		}
		told, known := w.send(m, expect, began, next)
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
// nothing was written.
func (w *world) send(m message, expect, began int, next ask) (told row, known bool) {
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
		if !next() || w.steps-began > patience {
			return row{}, false
		}
		f, ok := w.first(m.key, expect+1)
		switch {
		case ok && f.nonce == m.nonce:
			told.seq = f.seq
			return told, true
		case ok && f.kind != record && f.row > expect:
			return row{}, false // a cleaner replaced what came
		case ok:
			return row{}, true
		}
		if !next() || w.steps-began > patience {
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
		for _, m := range w.front {
			old := now-m.at >= settle || w.has(NoSettle)
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
			last := w.last(key)
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
		if again.kind = stub; !w.stored(last) {
			w.fail("document %d became a stub, and version %d has no row", last.key, last.version)
		}
		w.put(again, expect, true)
	}
}

// reader lists all documents: what is not stored yet, then the table. It must find what
// was acknowledged before.
func (w *world) reader(next ask) {
	if !next() {
		return
	}
	before := len(w.told)
	var found []row
	table := func() { found = append(found, w.table...) }
	if w.has(ReadsTableFirst) {
		table()
		if !next() {
			return
		}
	}
	upTo := w.archived()
	if !next() {
		return
	}
	for _, m := range w.front {
		if m.seq > upTo && m.kind != stub {
			found = append(found, row{key: m.key, version: m.version, life: m.life, seq: m.row})
		}
	}
	if !w.has(ReadsTableFirst) {
		if !next() {
			return
		}
		table()
	}
	for _, t := range w.told[:before] {
		ok := false
		for _, r := range found { // of a document the highest sequence is the newest
			ok = ok || r.key == t.key && r.seq >= t.seq
		}
		if !ok {
			w.fail("a list lacks document %d at version %d, which was acknowledged before it began", t.key, t.version)
		}
	}
}
