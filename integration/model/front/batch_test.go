package front

import "slices"

// guard is the message that holds a write to its lock: it renews the lock, or releases it.
type guard struct {
	key, expect int
	l           lock
}

// store stores the messages of a batch, all or none: each if its key's last is the one
// expected, and the guard, which comes first, if the lock is.
func (w *world) store(ms []message, expects []int, g *guard) bool {
	if g != nil {
		if was := w.lockOf(g.key); g.expect >= 0 && was.seq != g.expect {
			return false
		} else if was.token != g.l.token || was.released {
			w.fail("a write under the lock %d on document %d was stored, and the lock was lost", g.l.token, g.key)
		}
	}
	fits := make([]bool, len(ms))
	for i, m := range ms {
		fits[i] = expects[i] < 0 || w.last(m.key).seq == expects[i]
	}
	all := !slices.Contains(fits, false)
	if !all && !w.has(StoresInPart) {
		return false
	}
	if g != nil {
		w.putLock(g.key, g.l, g.expect)
	}
	for i, m := range ms {
		if fits[i] {
			w.put(m, -1, false)
		}
	}
	return all
}

// following is the record of a call that follows a key's last.
func (w *world) following(last message, key, call int, removed bool) message {
	m := message{key: key, kind: record, version: last.version + 1, life: last.life, call: call, nonce: call * 100, removed: removed}
	if last.seq == 0 {
		m.life, m.version = call, 1 // the time of its creation, in a record
	}
	return m
}

// batcher changes two documents in one batch, and looks what became of it where the answer is lost.
func (w *world) batcher(key int, next ask) {
	if !next() {
		return
	}
	w.calls++
	call, began := w.calls, w.steps
	w.members[call] = 2
	ms, expects := make([]message, 2), make([]int, 2)
	for i := range ms {
		k := (key + i) % keys
		last := w.last(k)
		ms[i], expects[i] = w.following(last, k, call, false), last.seq
		if i > 0 && w.has(ExpectsFirstAlone) {
			expects[i] = -1
		}
	}
	if !next() { // it may sleep here for as long as it likes
		return
	}
	for {
		took := w.store(ms, expects, nil)
		if w.rnd.IntN(6) > 0 { // the answer came
			if took {
				w.tellBatch(ms, w.lastSeq)
			}
			return
		}
		if !next() || w.steps-began > maxWait {
			return
		}
		switch f, what := w.lookAll(ms, expects); what {
		case mine:
			w.tellBatch(ms, f)
			return
		case absent:
			if !next() || w.steps-began > maxWait { // it sends again
				return
			}
		default:
			return
		}
	}
}

// tellBatch notes a batch as acknowledged; last is the sequence of its last record.
func (w *world) tellBatch(ms []message, last int) {
	for i, m := range ms {
		w.told = append(w.told, row{m.key, m.version, m.life, m.call, last - (len(ms) - 1 - i), false})
	}
}

type outcome int

const (
	absent outcome = iota
	mine
	another
	blurred
)

// lookAll is package fronts' of the same name: it returns the sequence of the last record too.
func (w *world) lookAll(ms []message, expects []int) (last int, all outcome) {
	for i, m := range ms {
		f, ok := w.first(m.key, max(expects[i], 0)+1)
		switch {
		case !ok:
		case f.nonce == m.nonce:
			return f.seq + len(ms) - 1 - i, mine
		case f.kind != record && f.row > expects[i]:
			all = blurred
		default:
			return 0, another
		}
	}
	return 0, all
}
