package fork

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// nats is what one copy of NATS holds.
type nats struct {
	events []int         // ids by sequence
	routed int           // the checkpoint
	epoch  int           // in it: the last router's
	shards map[int][]int // ids by position
	active int
	sealed map[int]bool
	forks  map[int]*fork // the registry's
	gone   map[int]bool  // shards whose fork is settled
}

// fork is a shard that was left.
type fork struct {
	to        int
	evaluated bool
	at        int
	move      []int // positions
}

func (n *nats) copy() *nats {
	c := *n
	c.events = slices.Clone(n.events)
	c.shards, c.forks = map[int][]int{}, map[int]*fork{}
	for s, ids := range n.shards {
		c.shards[s] = slices.Clone(ids)
	}
	for s, f := range n.forks {
		same := *f
		c.forks[s] = &same
	}
	c.sealed, c.gone = maps.Clone(n.sealed), maps.Clone(n.gone)
	return &c
}

// world is both servers, and what the parts know.
type world struct {
	*nats
	rng    *rand.Rand
	guards map[string]bool // that are off
	table  map[int][]int   // ids by position; ClickHouse
	next   int             // ids and shards
	older  *nats
	worked [2]int       // the shards that two routers began with; 0: none
	epochs [2]int       // with which they fenced the lane
	seen   map[int]bool // ids that were accepted and not lost with NATS before they were stored
}

func newWorld(seed uint64, off string) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), guards: map[string]bool{off: true}, table: map[int][]int{}, next: 1, seen: map[int]bool{}}
	w.nats = &nats{shards: map[int][]int{}, active: w.fresh(), sealed: map[int]bool{}, forks: map[int]*fork{}, gone: map[int]bool{}}
	return w
}

func (w *world) fresh() int { w.next++; return w.next }

func (w *world) accept() {
	id := w.fresh()
	w.events, w.seen[id] = append(w.events, id), true
}

// begin has a router begin a run: it fences the other off, seals what was left, and reads which shard
// is active.
func (w *world) begin(r int) {
	w.epoch++
	w.epochs[r] = w.epoch
	for s := range w.forks {
		w.sealed[s] = true
	}
	if w.active == 0 {
		w.active = w.fresh()
	}
	w.worked[r] = w.active
}

// route has a router add the next event to the shard that it began with, unless another began since.
func (w *world) route() {
	r := w.rng.IntN(2)
	fenced := w.epochs[r] != w.epoch && !w.guards["a router fences before it seals"]
	if w.worked[r] == 0 || fenced || w.forks[w.worked[r]] != nil && w.rng.IntN(8) == 0 {
		w.begin(r)
		return
	}
	if w.routed < len(w.events) {
		w.shards[w.worked[r]] = append(w.shards[w.worked[r]], w.events[w.routed])
		w.routed++
	}
}

func stored(rows []int, id int) bool { return slices.Contains(rows, id) }

// sink looks at a shard, and stores its next frame or leaves the shard.
func (w *world) sink(s int) {
	frames, rows := w.shards[s], w.table[s]
	if w.forks[s] != nil {
		w.complete(s)
		return
	}
	if end := min(len(frames), len(rows)); end > 0 && rows[end-1] != frames[end-1] && !(w.guards["the end is compared"] && len(frames) <= len(rows)) {
		w.forks[s] = &fork{to: w.fresh()}
		if w.active == s {
			w.active = 0
		}
		return
	}
	if len(frames) > len(rows) {
		w.table[s] = append(rows, frames[len(rows)])
	}
}

// complete takes the next step of a shard that was left.
func (w *world) complete(s int) {
	f := w.forks[s]
	if w.gone[s] || !w.sealed[s] && !w.guards["a fork is judged once it is sealed"] {
		return
	}
	if !f.evaluated || w.guards["a fork is judged once"] {
		f.evaluated, f.at, f.move = true, len(w.shards[s]), nil
		for pos, id := range w.shards[s] {
			if stored(w.table[s], id) && !w.guards["what is stored is not moved"] || w.guards["a fork is judged once"] && stored(w.table[f.to], id) {
				continue
			}
			f.at, f.move = min(f.at, pos), append(f.move, pos)
		}
		return
	}
	n := len(w.shards[f.to])
	if w.guards["a move goes on after the last frame"] && w.rng.IntN(4) == 0 {
		n = 0
	}
	if w.guards["frames are deleted once they are moved"] && w.rng.IntN(4) == 0 {
		n = len(f.move)
	}
	if n < len(f.move) {
		w.shards[f.to] = append(w.shards[f.to], w.shards[s][f.move[n]])
		return
	}
	w.shards[s], w.gone[s] = w.shards[s][:f.at], true
}

// restore puts the older copy in the place of NATS. What the streams lose before it is stored is lost.
func (w *world) restore() {
	if w.older == nil {
		return
	}
	w.nats, w.worked, w.epochs = w.older.copy(), [2]int{}, [2]int{}
	for id := range w.seen {
		if !slices.Contains(w.events, id) && !w.isStored(id) {
			delete(w.seen, id)
		}
	}
}

func (w *world) isStored(id int) bool {
	for _, rows := range w.table {
		if stored(rows, id) {
			return true
		}
	}
	return false
}

func (w *world) anyShard() int {
	ids := slices.Sorted(maps.Keys(w.shards))
	if len(ids) == 0 {
		return w.active
	}
	return ids[w.rng.IntN(len(ids))]
}

// play takes steps at random, and then lets all come to rest.
func (w *world) play() error {
	w.begin(0)
	copyAt, restoreAt, again := w.rng.IntN(40), 40+w.rng.IntN(40), 80+w.rng.IntN(80)
	for i := range 160 {
		switch {
		case i == copyAt:
			w.rest(200) // the copy is made of a NATS that was stopped
			w.older = w.nats.copy()
		case i == restoreAt, i == again && w.rng.IntN(2) == 0:
			w.rest(200)
			w.restore()
		}
		switch w.rng.IntN(6) {
		case 0, 1:
			w.accept()
		case 2, 3:
			w.route()
		case 4:
			w.sink(w.anyShard())
		default:
			if w.rng.IntN(4) == 0 {
				w.begin(w.rng.IntN(2))
			}
		}
	}
	w.rest(600)
	return w.evaluate()
}

// rest lets the parts work until nothing is left to do.
func (w *world) rest(steps int) {
	for range steps {
		w.route()
		for _, s := range slices.Sorted(maps.Keys(w.shards)) {
			w.sink(s)
		}
	}
}

// evaluate compares what was accepted with the table.
func (w *world) evaluate() error {
	count := map[int]int{}
	for _, rows := range w.table {
		for _, id := range rows {
			count[id]++
		}
	}
	for id := range w.seen {
		if count[id] != 1 {
			return fmt.Errorf("event %d is stored %d times", id, count[id])
		}
	}
	return nil
}
