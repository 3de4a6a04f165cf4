package model

import (
	"errors"
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

var errGivenAgain = errors.New("the stream lost its end")

// maxCuts bounds the cuts of a run.
const maxCuts = 3

// cutEvents has NATS start again on an EVENTS that ends earlier. What was on the wire to
// it is lost, and so is what the janitor was about to purge: their connections are gone.
func (w *World) cutEvents() {
	n := 1 + w.rng.IntN(min(len(w.events.msgs), 12))
	if w.traces() {
		w.tracef("    EVENTS loses its last %d of %d", n, len(w.events.msgs))
	}
	for _, m := range w.events.cut(uint64(len(w.events.msgs) - n + 1)) {
		w.oracle.lose(m)
	}
	w.lostConnections()
}

// lostConnections has NATS start again on a stream that is shorter.
func (w *World) lostConnections() {
	w.cuts++
	w.nats.crash()
	w.wire = slices.DeleteFunc(w.wire, func(r sent) bool { return r.at == w.nats })
	for _, p := range w.processes {
		if p.dies == JanitorDies {
			p.call, p.err, p.asleep = call{}, errCrashed, 0
		}
	}
}

// lose notes what a cut took: a message that was not routed is gone. Which it was the
// lanes' checkpoints tell, by their cuts.
func (o *oracle) lose(m *message) {
	o.cut[m.frame.id] = !slices.ContainsFunc(o.w.shards.msgs, func(s *message) bool { return s.frame == m.frame && s.reason != staleSeq })
}

// damageTail takes the last frame of an active shard from SHARDS, but not the checkpoint
// that was stored behind it.
func (w *World) damageTail() {
	for _, id := range w.bucket.order {
		last := w.shards.lastOf(shardOf(id))
		if last == nil || w.bucket.shard(id).value.Status != registry.Active || !w.faultTimes(TailDamaged) {
			continue
		}
		last.gone, w.tailTaken[id] = true, true
		w.shards.relast(last.subject)
		if last.placed.Pos > w.table.heads[id] {
			w.damaged[id], w.tailLost[id] = last.placed.Pos, true
		}
		return
	}
}

// sourceAt is what EVENTS says about where a checkpoint stands.
func (w *World) sourceAt(cp *checkpoint.Checkpoint) checkpoint.SourceAt {
	at := checkpoint.SourceAt{LastSeq: uint64(len(w.events.msgs))}
	if m := w.events.at(cp.Source); m != nil {
		at.Found, at.Stored, at.Digest = true, stamp(m), digest(m.frame)
	}
	return at
}

func (w *World) misfit(cp *checkpoint.Checkpoint) bool { return cp.Misfit(w.sourceAt(cp)) != "" }

// anyMisfit reports whether a lane did not meet a cut yet.
func (w *World) anyMisfit() bool {
	for lane := range w.lanes {
		if m := w.shards.lastOf(routedOf(lane)); m != nil && w.misfit(&m.point) {
			return true
		}
	}
	return false
}

// givenAgain reports whether EVENTS lost its end below a message that a feed knows.
func (w *World) givenAgain(known schemas.Source) bool {
	if known.Seq == 0 {
		return false
	}
	if m := w.events.at(known.Seq); m != nil && stamp(m) <= known.Stored {
		return false
	}
	return uint64(len(w.events.msgs)) < known.Seq || slices.ContainsFunc(w.events.msgs[:known.Seq], func(m *message) bool { return !m.gone && stamp(m) > known.Stored })
}

// fit moves the checkpoint to where the lane goes on when EVENTS lost its end, as routers
// do, and where no trace tells as a repair does: by what is stored.
func (l *lane) fit() error {
	w, purged := l.w, false
	err := l.read("compare EVENTS", w.nats, func() {
		l.known, l.boots = schemas.Source{Seq: uint64(len(w.events.msgs)), Stored: int64(w.nats.clock()) + 1}, w.natsBoots
		at := w.sourceAt(&l.cp)
		switch {
		case l.cp.Misfit(at) == "" || w.broken(NumbersAreMessages):
			return
		case w.struck[EventsCut] == 0: // SHARDS is older than EVENTS: its message was purged
			purged = true
			return
		case w.broken(GoesOnAtTheEnd):
			l.cp.Source = min(l.cp.Source, at.LastSeq)
			l.cp.Digest, l.cp.Stored = "", 0
			return
		}
		w.saw(CutsMet)
		var present, lane []checkpoint.EventsMessage
		for seq := uint64(1); seq <= min(l.cp.Source, at.LastSeq); seq++ {
			if m := w.events.at(seq); m != nil {
				e := checkpoint.EventsMessage{Seq: seq, Stored: stamp(m), Frame: &m.frame.Frame}
				if present = append(present, e); m.lane == l.number {
					lane = append(lane, e)
				}
			}
		}
		traces := checkpoint.Traces{}
		for _, m := range w.shards.msgs {
			if !m.gone && (m.kind == shardSubject || m.kind == deadSubject) {
				traces.Add(checkpoint.Trace{Seq: m.placed.SourceSeq, Stored: m.placed.SourceTime, At: stamp(m)})
			}
		}
		after, doubt := l.cp.Resume(lane, traces)
		cut := l.cp.CutOf(present, traces, 0, 1)
		digestAt, stored := "", int64(0)
		if m := w.events.at(after); m != nil {
			digestAt, stored = digest(m.frame), stamp(m)
		}
		l.cp = l.cp.Recut(after, digestAt, stored, cut)
		joins := false
		for _, d := range doubt {
			m := w.events.at(d.Seq)
			if joins = slices.ContainsFunc(w.table.parts, func(p part) bool { return slices.Contains(p.frames, m.frame) }); joins {
				l.cp.NoteStored(schemas.Source{Seq: d.Seq, Stored: d.Stored}, 0, false)
			}
		}
	})
	if err == nil && purged {
		err = l.stop("message %d of EVENTS is not there", l.cp.Source)
	}
	return err
}
