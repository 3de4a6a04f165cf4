package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// SHARDS loses its end, inside a batch or between two. A lane's router goes on where that
// is proven to be right, and stops where it is not: what a repair does then is not played.

// errRolledBack stops a lane until a repair.
var errRolledBack = errors.New("SHARDS was rolled back")

// After enoughStops in a row the cause is not another router: the lane waits for a repair.
const enoughStops = 3

// stopped reports whether a lane's routers refuse to go on.
func (w *World) stopped(lane int) bool { return w.stops[lane] >= enoughStops }

// short reports whether SHARDS lost the end of a shard that was left: verify names it.
func (w *World) short(e *registry.Shard) bool {
	last := w.shards.lastOf(shardOf(e.ID))
	return w.shortened[e.ID] && (w.stopped(e.ID.Lane()) || last == nil || last.placed.Pos < max(e.Until(), w.table.heads[e.ID]))
}

// cutShards has NATS start again on a SHARDS that ends earlier.
func (w *World) cutShards() {
	n := 1 + w.rng.IntN(min(len(w.shards.msgs), 12))
	from := uint64(len(w.shards.msgs) - n + 1)
	if w.beforeAll(from) {
		return
	}
	if w.traces() {
		w.tracef("    SHARDS loses its last %d of %d", n, len(w.shards.msgs))
	}
	for _, m := range w.shards.cut(from) {
		switch m.kind {
		case shardSubject:
			w.shortened[m.shard] = true
			fallthrough
		case deadSubject:
			w.oracle.loseRouted(m.frame)
		}
	}
	w.lostConnections()
}

// beforeAll reports whether a cut would leave a lane nothing but a checkpoint from before
// its first message, while EVENTS no longer holds that, or of a shard nothing but what was
// purged: see the package's text.
func (w *World) beforeAll(from uint64) bool {
	for lane := range w.lanes {
		source := uint64(0)
		for _, m := range w.shards.of[routedOf(lane)] {
			if m.seq < from {
				source = m.point.Source
			}
		}
		if source == 0 && slices.ContainsFunc(w.events.of[laneOf(lane)], func(m *message) bool { return m.gone }) {
			return true
		}
	}
	for _, id := range w.bucket.order {
		below, left := 0, 0
		for _, m := range w.shards.of[shardOf(id)] {
			if m.seq < from {
				below++
				if !m.gone {
					left++
				}
			}
		}
		if below > 0 && left == 0 {
			return true
		}
	}
	return false
}

// checkNew refuses a lane that has shards and no checkpoint.
func (l *lane) checkNew() error {
	has := false
	err := l.read("list shards", l.w.nats, func() {
		for _, id := range l.w.bucket.order {
			has = has || l.w.bucket.shard(id).value.ID.Lane() == l.number
		}
	})
	if err == nil && has {
		err = l.stop("its checkpoint is gone")
	}
	return err
}

// loseRouted notes a frame that SHARDS lost. One that EVENTS does not hold any more, and
// the table does not have, is gone.
func (o *oracle) loseRouted(f *frame) {
	stored := slices.ContainsFunc(o.w.table.parts, func(p part) bool { return slices.Contains(p.frames, f) })
	o.cut[f.id] = o.cut[f.id] || !stored && !o.w.inEvents(f)
}

func (w *World) inEvents(f *frame) bool {
	return slices.ContainsFunc(w.events.of[laneOf(f.lane)], func(m *message) bool { return m.frame == f && !m.gone })
}

// waits reports whether a frame that is not stored waits for the repair of its lane.
func (o *oracle) waits(f *frame) bool {
	w := o.w
	return w.stopped(f.lane) && (w.inEvents(f) || slices.ContainsFunc(w.shards.msgs, func(m *message) bool { return m.frame == f && !m.gone }))
}

// left says what the streams still have of a frame.
func (o *oracle) left(f *frame) string {
	w := o.w
	places := slices.DeleteFunc(slices.Clone(w.shards.msgs), func(m *message) bool { return m.frame != f })
	text := fmt.Sprintf("lane %d, month %s, in EVENTS %v, stops %d", f.lane, f.month, w.inEvents(f), w.stops[f.lane])
	for _, m := range places {
		text += fmt.Sprintf("; message %d of SHARDS, purged %v, shard %s position %d %s", m.seq, m.gone, m.shard, m.placed.Pos, m.reason)
	}
	return text
}

// stop counts that the lane refuses to go on.
func (l *lane) stop(format string, a ...any) error {
	l.w.stops[l.number]++
	l.w.saw(LanesStopped)
	return fmt.Errorf("%w: lane %d: %s", errRolledBack, l.number, fmt.Sprintf(format, a...))
}

// forgotten compares the checkpoint with its copy in the registry.
func (l *lane) forgotten() error {
	return l.read("read copy", l.w.nats, func() {
		if known := l.w.copies[l.number]; l.cp.Forgets(&known) && known.Era == l.cp.Era {
			l.past = known
			l.past.Tails = maps.Clone(known.Tails)
		}
	})
}

// keepCopy has the registry keep a copy. A real one is up to a second old.
func (l *lane) keepCopy() {
	if !l.cp.Forgets(&l.past) {
		l.w.copies[l.number] = l.cp.Copy()
	}
}

// findKept notes dead letters whose batch lost its end.
func (l *lane) findKept() error {
	return l.read("find dead letters", l.w.nats, func() {
		for m := range l.w.shards.from(subject{kind: deadSubject}, l.ckSeq+1) {
			if m.frame.lane == l.number && m.placed.SourceSeq > l.cp.Source {
				l.cp.Keep(checkpoint.Kept{Seq: m.placed.SourceSeq, Stored: m.placed.SourceTime, Events: m.frame.Rows})
			}
		}
	})
}

// checkTail refuses a shard whose last frame came from above the checkpoint.
func (l *lane) checkTail(id schemas.Shard, t tail) error {
	known, ok := l.cp.Tails[id]
	switch {
	case l.w.broken(TakesTailsAsTheyAre):
	case !ok && l.cp.Behind(t.era, t.source), ok && t.pos > known.Pos, ok && t.pos == known.Pos && t.digest != known.Digest:
		return l.stop("shard %s ends at %d, with message %d", id, t.pos, t.source)
	}
	return nil
}

// checkLeft refuses to begin an empty shard while the one before it lacks its end.
func (l *lane) checkLeft(empty registry.Shard) error {
	var shards []registry.Shard
	err := l.read("list shards", l.w.nats, func() {
		for _, id := range l.w.bucket.order {
			if e := l.w.bucket.shard(id).value; e.Month == empty.Month {
				shards = append(shards, e)
			}
		}
	})
	left, ok := registry.LastLeft(shards, l.number, empty.ID)
	if err != nil || !ok {
		return err
	}
	t, err := l.tailOf(left.ID, false)
	if err == nil && left.Until() > t.pos {
		err = l.stop("shard %s was left at %d and ends at %d", left.ID, left.Until(), t.pos)
	}
	return err
}

// checkEnd refuses to seal a shard below where it was left, unless a younger one has a
// frame.
func (l *lane) checkEnd(r retiredShard, t tail) error {
	var e registry.Shard
	younger := false
	err := l.read("list shards", l.w.nats, func() {
		e = l.w.bucket.shard(r.id).value
		for _, id := range l.w.bucket.order {
			if o := l.w.bucket.shard(id).value; o.SameLane(&e) && registry.Compare(o, e) > 0 && l.w.shards.lastOf(shardOf(id)) != nil {
				younger = true
			}
		}
	})
	if err == nil && e.Until() > t.pos && !younger && !l.w.broken(BeginsBehindLost) {
		err = l.stop("shard %s was left at %d and ends at %d", r.id, e.Until(), t.pos)
	}
	return err
}
