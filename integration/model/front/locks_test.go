package front

// ttl is how many steps a lock is held; a released one leaves its message for a few.
const (
	ttl         = 90
	releasedTTL = 10
)

// lock is a message of a lock's subject. The server removes it once its time is over.
type lock struct {
	seq, token, until int
	released          bool
}

// lockOf is the last message of a key's lock; its seq is 0 without one.
func (w *world) lockOf(key int) lock {
	for i := len(w.locks[key]) - 1; i >= 0; i-- {
		if l := w.locks[key][i]; l.until > w.steps {
			return l
		}
	}
	return lock{}
}

// putLock stores a lock, if the key's last is the one expected; -1 expects nothing. It takes the
// place of those before it. A lock that is new is named by its sequence.
func (w *world) putLock(key int, l lock, expect int) (lock, bool) {
	was := w.lockOf(key)
	if expect >= 0 && was.seq != expect {
		return lock{}, false
	}
	w.lastSeq++
	if l.seq = w.lastSeq; l.token == 0 {
		l.token = l.seq
	}
	if was.seq > 0 && !was.released && was.token != l.token {
		w.fail("the lock %d on document %d took the place of %d, which was held", l.token, key, was.token)
	}
	if !w.has(NoLockRollup) {
		w.locks[key] = nil
	}
	w.locks[key] = append(w.locks[key], l)
	return l, true
}

// locker takes the lock of a key, writes under it, and releases it with its last write.
func (w *world) locker(key int, next ask) {
	if !next() {
		return
	}
	held := w.lockOf(key)
	if held.seq > 0 && !held.released {
		if w.releasedToken[held.token] {
			w.fail("the lock %d on document %d was released, and is held again", held.token, key)
		}
		return
	}
	if !next() { // another may lock it meanwhile
		return
	}
	expect := held.seq
	if w.has(NoLockExpectation) {
		expect = -1
	}
	mine, ok := w.putLock(key, lock{until: w.steps + ttl}, expect)
	if !ok || w.rnd.IntN(6) == 0 { // refused, or its answer is lost
		return
	}
	writes := 1 + w.rnd.IntN(3)
	for n := range writes {
		if !next() {
			return
		}
		at := w.lockOf(key)
		if at.released || at.token != mine.token {
			return // lost
		}
		if !next() {
			return
		}
		w.calls++
		last := w.last(key)
		m := w.following(last, key, w.calls, false)
		if !next() { // the lock may end here, and another take it
			return
		}
		g := guard{key: key, expect: at.seq, l: lock{token: mine.token, until: w.steps + ttl}}
		if n == writes-1 {
			g.l = lock{token: mine.token, until: w.steps + releasedTTL, released: true}
		}
		if w.has(NoGuard) {
			g.expect = -1
		}
		if !w.store([]message{m}, []int{last.seq}, &g) {
			return
		}
		if g.l.released {
			w.releasedToken[mine.token] = true
		}
		if w.rnd.IntN(6) > 0 { // the answer came
			w.told = append(w.told, row{m.key, m.version, m.life, m.call, w.lastSeq, false})
		}
	}
}
