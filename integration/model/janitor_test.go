package model

import (
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// keepTime is how long routed messages stay in EVENTS, and minKeep how long
// when it is full. replayWindow is how long stored frames stay in SHARDS, unless
// it is full.
const (
	keepTime     = schemas.DedupWindow
	minKeep      = 30 * time.Second
	replayWindow = 15 * time.Minute
)

// snapshot is how far each lane was routed at a time.
type snapshot struct {
	at   time.Duration
	upTo []uint64
	eras []uint32
}

// newJanitor purges the streams, again and again.
func newJanitor(w *World) *process {
	return w.newProcess("janitor", JanitorDies, ReaderStalls, func(p *process) error {
		var past []snapshot // oldest first
		for {
			for range 16 {
				if err := p.pause(); err != nil {
					return err
				}
			}
			snap := snapshot{at: w.now, upTo: make([]uint64, w.lanes), eras: make([]uint32, w.lanes)}
			err := p.read("read checkpoints", w.nats, func() {
				for lane := range snap.upTo {
					if m := w.shards.lastOf(routedOf(lane)); m != nil {
						snap.upTo[lane], snap.eras[lane] = m.point.Source, m.point.Era
						if w.misfit(&m.point) && !w.broken(PurgesNumbers) {
							snap.upTo[lane] = 0
						}
					}
				}
			})
			if err != nil {
				return err
			}
			past = append(past, snap)
			settle := keepTime
			switch {
			case w.broken(NoKeepTime):
				settle = 0
			case w.events.full:
				settle = minKeep
			}
			var ripe *snapshot
			for len(past) > 0 && w.now-past[0].at >= settle {
				ripe, past = &past[0], past[1:]
			}
			if ripe != nil && !w.broken(PurgesNumbers) {
				for lane := range ripe.upTo { // sequences of one era compare
					if ripe.eras[lane] != snap.eras[lane] || snap.upTo[lane] == 0 {
						ripe.upTo[lane] = 0
					}
					ripe.upTo[lane] = min(ripe.upTo[lane], snap.upTo[lane]) // SHARDS may have lost its end since
				}
			}
			if ripe != nil {
				if err := p.purgeEvents(ripe.upTo); err != nil {
					return err
				}
			}
			if err := p.purgeShards(); err != nil {
				return err
			}
		}
	})
}

// purge asks NATS to purge a subject below a sequence.
func (p *process) purge(s *stream, sub subject, below uint64) error {
	w := p.w
	do := func() error {
		w.count[Purged] += s.purge(sub, below)
		return nil
	}
	return p.ask(call{what: "purge", at: w.nats, do: do, late: func() { _ = do() }})
}

// purgeEvents keeps the message that the checkpoint names.
func (p *process) purgeEvents(upTo []uint64) error {
	for lane, seq := range upTo {
		if err := p.purge(p.w.events, laneOf(lane), seq); err != nil {
			return err
		}
	}
	return nil
}

// purgeShards purges what is stored and old, shard by shard, from the frame at
// the head down; never the head itself nor the last frame.
func (p *process) purgeShards() error {
	w := p.w
	heads := map[schemas.Shard]uint64{}
	if err := p.read("read heads", w.engine, func() {
		for id, h := range w.table.heads {
			heads[id] = h
		}
	}); err != nil {
		return err
	}
	for _, id := range w.bucket.order {
		var below uint64
		err := p.read("find old frames", w.nats, func() {
			last := w.shards.lastOf(shardOf(id))
			for m := range w.shards.from(shardOf(id), 1) {
				switch {
				case w.nats.clock()-m.at < replayWindow && !w.shards.full:
					return
				case w.broken(PurgesUnstored) && m != last:
				case w.broken(PurgesLast) && m.placed.Pos <= heads[id]:
				case m.placed.Pos >= heads[id] || m == last:
					return
				}
				below = m.seq + 1
			}
		})
		if err != nil {
			return err
		}
		if below == 0 {
			continue
		}
		if err := p.purge(w.shards, shardOf(id), below); err != nil {
			return err
		}
	}
	return nil
}
