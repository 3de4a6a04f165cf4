package model

import (
	"maps"
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// shardFor is the lane's active shard for a frame, and why it must be left
// before the frame goes in, or "".
func (l *lane) shardFor(b *batch, f *frame) (*shardState, string, error) {
	s := l.active[f.month]
	if s == nil {
		e, err := l.place(f.month, l.number, registry.PointOf(&l.cp))
		if err != nil {
			return nil, "", err
		}
		if s, err = l.load(e); err != nil {
			return nil, "", err
		}
		if s.tail.pos == 0 && !l.w.broken(BeginsBehindLost) {
			if err := l.checkLeft(e.value); err != nil {
				delete(l.active, f.month)
				return nil, "", err
			}
		}
	}
	top := s.entry.value.MaxTs
	if t := b.of(s); t != nil {
		top = max(top, t.hi)
	}
	reason := s.full(l.rotation, top, f.MaxTs)
	if reason != "" && s.tail.pos < l.past.Tails[s.entry.value.ID].Pos && !l.w.broken(LeavesEarly) {
		l.w.saw(RoutedToTheSame)
		reason = ""
	}
	return s, reason, nil
}

// leave rotates away from a full shard. Its tail is entered as LeftAt, which tells later whether
// SHARDS lost the shard's end; the checkpoint's point gives the new shard its place in the lane's order.
func (l *lane) leave(s *shardState, reason string) (*shardState, error) {
	e, err := l.rotate(s.entry, reason, s.tail.pos, registry.PointOf(&l.cp))
	if err != nil {
		return nil, err
	}
	if l.w.broken(SealsBeforeCommit) {
		if err := l.sealAll([]retiredShard{{s.entry.value.Month, s.entry.value.ID}}); err != nil {
			return nil, err
		}
	}
	return l.load(e)
}

func (l *lane) load(e entry[registry.Shard]) (*shardState, error) {
	t, err := l.tailOf(e.value.ID, true)
	if err != nil {
		return nil, err
	}
	s := &shardState{entry: e, tail: t}
	l.active[e.value.Month] = s
	return s, nil
}

// tailOf is where a shard ends: where SHARDS says, or the checkpoint, which was stored
// behind the shard's last frame and survived it.
func (l *lane) tailOf(id schemas.Shard, mayLag bool) (tail, error) {
	t, err := l.readTail(id, mayLag)
	if err == nil {
		err = l.checkTail(id, t)
	}
	if known, ok := l.cp.Tails[id]; err == nil && ok && t.pos < known.Pos && !l.w.broken(NoTails) && (l.w.tailTaken[id] || !l.w.broken(KnowsLostTailsAlone)) {
		l.w.saw(TailsKnown)
		return tail{pos: known.Pos, seq: t.seq, digest: known.Digest, rows: known.Rows}, nil
	}
	return t, err
}

// readTail reads the end of a shard. A replica that lags may answer when the
// tail will be compared-and-set; for sealing it must be the leader.
func (l *lane) readTail(id schemas.Shard, mayLag bool) (t tail, err error) {
	w := l.w
	err = l.read("read tail", w.nats, func() {
		t = tailOf(w.shards.lastOf(shardOf(id)))
		if mayLag && w.faultTimes(TailStale) || !mayLag && w.broken(SealReadsReplica) && w.coin(8) {
			t = tailOf(w.shards.laggingLastOf(shardOf(id)))
		}
	})
	return t, err
}

// retiredShard is a shard that was left and not sealed.
type retiredShard struct {
	month schemas.Month
	id    schemas.Shard
}

// retired are the lane's retired shards of every month.
func (l *lane) retired() (out []retiredShard, err error) {
	for _, m := range months {
		h, err := l.readHead(m)
		if err != nil {
			return nil, err
		}
		for _, id := range slices.Sorted(maps.Keys(h.value.Retired)) {
			if h.value.Retired[id] == l.number {
				out = append(out, retiredShard{m, id})
			}
		}
	}
	return out, nil
}

// sealAll seals shards at their tails, which can no longer move.
func (l *lane) sealAll(retired []retiredShard) error {
	for _, r := range retired {
		t, err := l.tailOf(r.id, false)
		if err == nil {
			err = l.checkEnd(r, t)
		}
		if err != nil {
			return err
		}
		if err := l.seal(r.month, r.id, registry.Point{Era: t.era, Seq: t.source}, t.pos, t.rows); err != nil {
			return err
		}
	}
	return nil
}
