package model

import (
	"fmt"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// oracle knows what producers were told and holds it against what is there. It
// uses nothing that the pipeline computed.
type oracle struct {
	w        *World
	frames   []*frame // by id
	accepted []bool   // by id: its producer was told
	due      []bool   // by id: accepted, or seen by a reader
	order    []*frame // the due ones, in the order they became so
	cut      []bool   // by id: EVENTS lost its message before it was routed
}

func (o *oracle) made(f *frame) {
	o.frames = append(o.frames, f)
	o.accepted = append(o.accepted, false)
	o.due = append(o.due, false)
	o.cut = append(o.cut, false)
}

func (o *oracle) accept(f *frame) {
	if !o.accepted[f.id] {
		o.accepted[f.id] = true
		o.w.saw(Accepted)
		o.expect(f)
	}
}

// expect has every reader that begins from now on see a frame.
func (o *oracle) expect(f *frame) {
	if !o.due[f.id] && !f.poison {
		o.due[f.id] = true
		o.order = append(o.order, o.frames[f.id])
	}
}

// checkRead holds an answer against the first due frames of the order.
func (o *oracle) checkRead(q *query, due int) {
	if len(o.w.damaged) > 0 {
		return // what is lost is not seen; that it is named is checked at the end
	}
	o.w.saw(Reads)
	for _, f := range o.order[:due] {
		if !o.cut[f.id] && f.MaxTs >= q.from && f.MinTs <= q.to && (f.id >= len(q.seen) || !q.seen[f.id]) {
			o.w.fail("%s does not see frame %d, which was there when it began", q.name, f.id)
			return
		}
	}
	for id, seen := range q.seen {
		if seen {
			o.expect(o.frames[id])
		}
	}
}

// check compares, after everything has come to rest.
func (o *oracle) check() {
	stored, dead := o.count()
	for id, f := range o.frames {
		n, d := stored[id], dead[id]
		switch {
		case n > 1 || d > 1 || n+d > 1:
			o.w.fail("frame %d is there more than once: stored %d times, dead %d times", id, n, d)
		case o.accepted[id] && n+d == 0 && !o.cut[id] && !o.named(f) && !o.waits(f):
			o.w.fail("frame %d was accepted and is lost: %s", id, o.left(f))
		case n == 1 && f.poison:
			o.w.fail("frame %d is poison and is stored", id)
		}
	}
	for _, id := range o.w.bucket.order {
		o.checkShard(o.w.bucket.shard(id).value)
	}
	o.checkOrder()
	for lane := range o.w.lanes {
		o.checkTotals(lane)
	}
}

// count says how often each frame stands in the table and among the dead
// letters. A dead letter because of a stale sequence is a duplicate that was
// kept because the router could not tell: it must not be the only copy.
func (o *oracle) count() (stored, dead []int) {
	stored, dead = make([]int, len(o.frames)), make([]int, len(o.frames))
	for _, p := range o.w.table.parts {
		for _, f := range p.frames {
			stored[f.id]++
		}
	}
	for _, m := range o.w.shards.msgs {
		if m.kind == deadSubject && m.reason != staleSeq {
			dead[m.frame.id]++
		}
	}
	return stored, dead
}

// named says whether a frame that is not stored lies in a shard that was damaged,
// and whose sink stopped and named the gap. All but the damaged frame are in
// SHARDS still.
func (o *oracle) named(f *frame) bool {
	for id, pos := range o.w.damaged {
		for _, m := range o.w.shards.msgs {
			if m.kind == shardSubject && m.shard == id && m.frame.id == f.id {
				return o.w.tailLost[id] && m.placed.Pos == pos || o.w.alarms[id] != nil && (m.placed.Pos == pos || !m.gone)
			}
		}
	}
	return false
}

// checkShard walks a shard's frames, purged ones too, beside its rows.
func (o *oracle) checkShard(e registry.Shard) {
	if o.w.stopped(e.ID.Lane()) {
		return
	}
	var at, rows uint64
	prev := ""
	frames := []*frame{nil} // by position
	for _, m := range o.w.shards.msgs {
		if m.kind != shardSubject || m.shard != e.ID {
			continue
		}
		f, p := m.frame, m.placed
		at++
		rows += uint64(f.Rows)
		switch {
		case p.Pos != at:
			o.w.fail("shard %s has position %d where %d belongs", e.ID, p.Pos, at)
		case p.Prev != prev:
			o.w.fail("shard %s: position %d names %s as its predecessor, it is %s", e.ID, at, p.Prev, prev)
		case p.ShardRows != rows:
			o.w.fail("shard %s: position %d says %d rows so far, they are %d", e.ID, at, p.ShardRows, rows)
		case f.MinTs < e.MinTs || f.MaxTs > e.MaxTs:
			o.w.fail("shard %s: its range does not cover position %d", e.ID, at)
		case f.month != e.Month || f.lane != e.ID.Lane():
			o.w.fail("shard %s: position %d is of another month or lane", e.ID, at)
		}
		prev = digest(f)
		frames = append(frames, f)
	}
	switch {
	case o.w.short(&e):
	case e.Status != registry.Active && e.SealedAt != at:
		o.w.fail("shard %s was sealed at %d and ends at %d", e.ID, e.SealedAt, at)
	case e.Status == registry.Closed && e.Rows != rows:
		o.w.fail("shard %s was closed with %d rows and has %d", e.ID, e.Rows, rows)
	}
	o.checkParts(e.ID, frames)
}

// checkParts holds the table's parts against the frames they must be made of.
func (o *oracle) checkParts(id schemas.Shard, frames []*frame) {
	at := 0
	for _, p := range o.w.table.parts {
		if p.shard != id {
			continue
		}
		for i, f := range p.frames {
			at++
			if at >= len(frames) && o.w.shortened[id] {
				return // what SHARDS lost is stored
			}
			if at >= len(frames) || frames[at].id != f.id {
				o.w.fail("shard %s: the table has frame %d at position %d", id, f.id, at)
				return
			}
			if uint64(at) != p.at[i] {
				o.w.fail("shard %s: rows of position %d stand under %d", id, at, p.at[i])
				return
			}
		}
	}
	if at != len(frames)-1 && o.w.alarms[id] == nil && !o.w.tailLost[id] {
		o.w.fail("shard %s has %d frames, the table has %d", id, len(frames)-1, at)
	}
}

// checkTotals holds a lane's checkpoint against what was routed.
func (o *oracle) checkTotals(lane int) {
	if o.w.stopped(lane) {
		return
	}
	var frames, rows, dead uint64
	for _, m := range o.w.shards.msgs {
		switch {
		case m.kind == shardSubject && m.frame.lane == lane:
			frames++
			rows += uint64(m.frame.Rows)
		case m.kind == deadSubject && m.frame.lane == lane:
			dead += uint64(m.frame.Rows)
		}
	}
	if m := o.w.shards.lastOf(routedOf(lane)); m != nil {
		if cp := m.point; cp.Frames != frames || cp.Rows != rows || cp.Dead != dead {
			o.w.fail("lane %d: its checkpoint says %d frames, %d rows, %d dead; they are %d, %d, %d", lane, cp.Frames, cp.Rows, cp.Dead, frames, rows, dead)
		}
	}
}

// fail keeps the first violation.
func (w *World) fail(format string, a ...any) {
	if w.violation == nil {
		w.violation = fmt.Errorf(format, a...)
		if w.traces() {
			w.tracef("VIOLATION: %v", w.violation)
		}
	}
}
