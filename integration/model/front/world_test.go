package front

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// kind is what a message of the front is.
type kind int

const (
	record kind = iota
	stub
	refresh
)

// message is one of the front.
type message struct {
	seq, key int
	at       int // the step in which it was stored
	kind     kind
	version  int
	life     int // which create of the key it follows
	call     int // of the writer; 0: a cleaner's
	nonce    int
	row      int // the sequence that its row has
	removed  bool
}

// row is one of the table, or of a frame on its way.
type row struct {
	key, version, life, call, seq int
	removed                       bool
}

// world is the servers, and what writers were told.
type world struct {
	rnd   *rand.Rand
	off   Break
	steps int

	front   []message
	lastSeq int
	// The mover's: its checkpoint, and the frames it made, of one record each.
	checkpoint, epoch int
	frames            []row
	table             []row // the first of frames
	// Retention's: when a record was put, which shards are marked and dropped, and the rows of
	// the last versions of documents that went with them.
	at              map[int]int
	marked, dropped map[int]bool
	expired         map[int]bool

	locks         [keys][]lock
	releasedToken map[int]bool // tokens of locks that were released

	calls    int
	members  map[int]int // of calls that are batches: how many documents they change
	told     []row       // acknowledged versions
	faults   [3]int
	problems []string
}

func (w *world) has(b Break) bool { return w.off&b != 0 }

func (w *world) fail(format string, a ...any) {
	w.problems = append(w.problems, fmt.Sprintf("step %d: ", w.steps)+fmt.Sprintf(format, a...))
}

// last is a key's last message; its seq is 0 without one.
func (w *world) last(key int) message {
	for i := len(w.front) - 1; i >= 0; i-- {
		if w.front[i].key == key {
			return w.front[i]
		}
	}
	return message{}
}

// first is the first message of a key from a sequence on.
func (w *world) first(key, from int) (message, bool) {
	i := slices.IndexFunc(w.front, func(m message) bool { return m.key == key && m.seq >= from })
	if i < 0 {
		return message{}, false
	}
	return w.front[i], true
}

// put stores a message, if the key's last is the one expected; -1 expects nothing.
func (w *world) put(m message, expect int, rollup bool) bool {
	if expect >= 0 && w.last(m.key).seq != expect {
		return false
	}
	if rollup {
		w.purge(m.key, w.lastSeq)
	}
	w.lastSeq++
	m.seq, m.at = w.lastSeq, w.steps
	if m.kind == record {
		m.row, w.at[m.seq] = m.seq, w.steps
	}
	w.front = append(w.front, m)
	return true
}

// purge takes out a key's messages up to a sequence, with it.
func (w *world) purge(key, upTo int) {
	w.front = slices.DeleteFunc(w.front, func(m message) bool { return m.key == key && m.seq <= upTo })
}

// stored is the row of a record.
func (w *world) stored(m message) bool {
	return slices.ContainsFunc(w.visible(), func(r row) bool { return r.seq == m.row && r.key == m.key && r.version == m.version })
}

// archived is up to where all of the lane is in the table.
func (w *world) archived() int { return min(w.checkpoint, w.storedBelow(len(w.table))) }

// storedBelow is up to where the frames say that all is stored below a head.
func (w *world) storedBelow(head int) int {
	if len(w.frames) > head {
		return w.frames[head].seq - 1
	}
	return w.checkpoint
}

// check is the oracle, once all has come to rest.
func (w *world) check() {
	type version struct{ key, life, version int }
	var lastRow [keys]row
	rows, calls, most := map[version]int{}, map[int]int{}, map[[2]int]int{}
	for _, r := range w.table {
		if was := lastRow[r.key]; was.seq > 0 && was.life != r.life && !was.removed && !w.expired[was.seq] {
			w.fail("document %d was created by call %d while it was there, at version %d", r.key, r.call, was.version)
		}
		lastRow[r.key] = r
		v := version{r.key, r.life, r.version}
		rows[v]++
		calls[r.call]++
		most[[2]int{r.key, r.life}] = max(most[[2]int{r.key, r.life}], r.version)
		if rows[v] > 1 {
			w.fail("version %d of document %d, life %d, has %d rows", r.version, r.key, r.life, rows[v])
		}
		if calls[r.call] > max(1, w.members[r.call]) {
			w.fail("call %d became %d versions", r.call, calls[r.call])
		}
	}
	for call, n := range w.members {
		if got := calls[call]; got != 0 && got != n {
			w.fail("of the batch of call %d, %d of %d changes were stored", call, got, n)
		}
	}
	for life, n := range most {
		for v := 1; v <= n; v++ {
			if rows[version{life[0], life[1], v}] == 0 {
				w.fail("document %d, life %d, does not have version %d of %d", life[0], life[1], v, n)
			}
		}
	}
	for _, t := range w.told {
		if !slices.Contains(w.table, t) {
			w.fail("version %d of document %d was acknowledged to call %d, and has no row", t.version, t.key, t.call)
		}
	}
}
