package model

import (
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// tail is the end of a shard: its last frame.
type tail struct {
	pos, seq uint64
	digest   string
	rows     uint64
	source   uint64 // in EVENTS
	era      uint32
}

func tailOf(m *message) tail {
	if m == nil {
		return tail{}
	}
	return tail{pos: m.placed.Pos, seq: m.seq, digest: digest(m.frame), rows: m.placed.ShardRows, source: m.placed.SourceSeq, era: m.placed.SourceEra}
}

// digest stands for the checksum of a frame's bytes.
func digest(f *frame) string { return digests[f.id%len(digests)] }

var digests = func() (d [4096]string) {
	for i := range d {
		d[i] = schemas.Shard(i).String()
	}
	return d
}()

// shardState is an active shard as its lane knows it.
type shardState struct {
	entry entry[registry.Shard]
	tail  tail
}

func (s *shardState) full(r schemas.Rotation, top, hi int64) string {
	return Full(r, s.tail.pos, s.tail.rows, top, hi)
}

// batch is an atomic batch being filled.
type batch struct {
	msgs    []outgoing
	touched []*touched
}

// touched is what the batch does to one shard.
type touched struct {
	state  *shardState
	lo, hi int64
	last   int // index of the shard's last message in the batch
}

func (b *batch) of(s *shardState) *touched {
	i := slices.IndexFunc(b.touched, func(t *touched) bool { return t.state == s })
	if i < 0 {
		return nil
	}
	return b.touched[i]
}

// frame numbers a frame at the shard's tail and adds it. The first of a shard
// expects the tail to be where it was.
func (b *batch) frame(w *World, s *shardState, f *frame, from *message, era uint32) {
	next := tail{pos: s.tail.pos + 1, seq: s.tail.seq, digest: digest(f), rows: s.tail.rows + uint64(f.Rows)}
	m := outgoing{message: message{
		subject: shardOf(s.entry.value.ID), frame: f,
		placed: schemas.Placed{Frame: f.Frame, Pos: next.pos, SourceSeq: from.seq, SourceTime: stamp(from), SourceEra: era, Prev: s.tail.digest, ShardRows: next.rows},
	}}
	t := b.of(s)
	if t == nil {
		t = &touched{state: s, lo: f.MinTs, hi: f.MaxTs}
		b.touched = append(b.touched, t)
		m.expects, m.after = !w.broken(NoTailExpectation), s.tail.seq
	}
	t.lo, t.hi, t.last = min(t.lo, f.MinTs), max(t.hi, f.MaxTs), len(b.msgs)
	s.tail = next
	b.msgs = append(b.msgs, m)
}

// dead adds a dead letter.
func (b *batch) dead(from *message, reason string) {
	b.msgs = append(b.msgs, outgoing{message: message{
		subject: subject{kind: deadSubject}, frame: from.frame, reason: reason,
		placed: schemas.Placed{SourceSeq: from.seq, SourceTime: stamp(from)},
	}})
}

// stamp is when a message was stored, as headers and checkpoints say it; never 0.
func stamp(m *message) int64 { return int64(m.at) + 1 }

func shardOf(id schemas.Shard) subject { return subject{kind: shardSubject, shard: id} }
func routedOf(lane int) subject        { return subject{kind: routedSubject, lane: lane} }
func laneOf(lane int) subject          { return subject{kind: laneSubject, lane: lane} }
