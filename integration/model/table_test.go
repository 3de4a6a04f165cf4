package model

import (
	"errors"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Refusals of the table.
var (
	errHeadMoved = errors.New("head moved")
	errTooSlow   = errors.New("too slow")
	errRename    = errors.New("the part could not be renamed")
	errReset     = errors.New("connection reset")
)

// dedupWindow is how many tokens the table remembers. insertTime is what one
// insert costs the server at least: together they outlast tables.InsertDeadline,
// as they must on a real server, whose window is 100,000.
const (
	dedupWindow = 2
	insertTime  = 12 * time.Second
)

// part is what one insert stored: the rows of frames, each under a position.
type part struct {
	shard  schemas.Shard
	frames []*frame
	at     []uint64 // by frame
}

// table is ClickHouse: one table and its deduplication log.
type table struct {
	parts []part
	log   []logged // the deduplication log: first in, first out
	heads map[schemas.Shard]uint64
	rows  map[schemas.Shard]uint64
	boot  int // counts restarts: what a connection began before is cut
}

// logged is a token in the log, and what it is about.
type logged struct {
	token string
	shard schemas.Shard
	head  uint64
}

func newTable() *table {
	return &table{heads: map[schemas.Shard]uint64{}, rows: map[schemas.Shard]uint64{}}
}

// insert is one INSERT as the server has it: planned, and waiting for its data.
type insert struct {
	tables.Insert
	token   string
	frames  []*frame
	last    uint64
	planned time.Duration
	boot    int
}

// plan evaluates the assertion, once: rows that come later do not repeat it.
func (t *table) plan(w *World, in *insert) error {
	if t.heads[in.Shard] > in.Head && !w.broken(NoHeadAssertion) {
		return errHeadMoved
	}
	in.planned, in.boot = w.engine.clock(), t.boot
	return nil
}

// finish takes the data of a planned insert. Token and part change hands under
// one lock, so no other insert sees the one without the other; a crash may.
func (t *table) finish(w *World, in *insert) error {
	switch {
	case in.boot != t.boot:
		return errReset
	case w.engine.clock()-in.planned > tables.InsertDeadline && !w.broken(NoDeadline):
		w.saw(InsertTooSlow)
		return errTooSlow
	}
	w.now += insertTime
	for _, l := range t.log {
		if l.token == in.token {
			w.saw(TokenHeld)
			return nil
		}
	}
	if !w.broken(NoLog) {
		t.remember(w, in)
	}
	switch {
	case w.faultTimes(TokenBurnt):
		w.engine.crash()
		return errReset
	case w.faultTimes(RenameFails):
		return errRename
	case w.broken(TokenBeforePart) && w.coin(8):
		w.later(w.engine, func() { t.add(w, in) })
		return errTimeout
	}
	t.add(w, in)
	return nil
}

// remember logs a token and forgets the oldest beyond the window. Burnt tokens
// stay, and do not count, until their head has moved; from then on they are
// there for a whole window. A real log holds 100,000: long before that many
// inserts a sink has come back to the shard. Grounds has a log without this.
func (t *table) remember(w *World, in *insert) {
	t.log = append(t.log, logged{in.token, in.Shard, in.Head})
	passed := func(l logged) bool { return l.head != t.heads[l.shard] || w.broken(ForgetsBurnt) }
	n := 0
	for _, l := range t.log {
		if passed(l) {
			n++
		}
	}
	if n > dedupWindow {
		i := slices.IndexFunc(t.log, passed)
		t.log = slices.Delete(t.log, i, i+1)
	}
}

// renew counts the tokens that named a head from now on.
func (t *table) renew(id schemas.Shard, head uint64) {
	var renewed []logged
	t.log = slices.DeleteFunc(t.log, func(l logged) bool {
		moved := l.shard == id && l.head == head
		if moved {
			renewed = append(renewed, l)
		}
		return moved
	})
	t.log = append(t.log, renewed...)
}

// positions are what the statement gives the rows of each frame: where the frame stands.
func positions(w *World, in *insert) []uint64 {
	at := make([]uint64, len(in.frames))
	for i := range at {
		switch {
		case w.broken(ConstantPositions):
			at[i] = in.last
		case w.broken(OneFrameOff):
			at[i] = in.Head + uint64(i)
		default:
			at[i] = in.Head + 1 + uint64(i)
		}
	}
	return at
}

func (t *table) add(w *World, in *insert) {
	at := positions(w, in)
	t.parts = append(t.parts, part{in.Shard, in.frames, at})
	t.heads[in.Shard] = max(t.heads[in.Shard], slices.Max(at))
	if !w.broken(ForgetsBurnt) {
		t.renew(in.Shard, in.Head)
	}
	for _, f := range in.frames {
		t.rows[in.Shard] += uint64(f.Rows)
	}
	if w.traces() {
		w.tracef("    table: shard %s gets positions %d to %d by %s", in.Shard, in.Head+1, in.last, in.token)
	}
}
