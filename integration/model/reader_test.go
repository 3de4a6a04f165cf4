package model

import (
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// query is one read of a range of time: positions, EVENTS, SHARDS, the table,
// each event once.
type query struct {
	*process
	from, to int64
	routed   []uint64                 // checkpoints
	heads    map[schemas.Shard]uint64 // of the table
	entries  []registry.Shard
	seen     []bool // by frame
}

// newReader reads, again and again, and holds each answer against what had been
// accepted when it began.
func newReader(w *World, name string) *process {
	return w.newProcess(name, ReaderDies, ReaderStalls, func(p *process) error {
		for {
			q := &query{process: p, from: 1, to: months[1].End()}
			if w.coin(2) {
				m := months[w.rng.IntN(len(months))]
				q.from = m.Start() + int64(w.rng.IntN(24))*int64(time.Hour)
				q.to = q.from + int64(w.rng.IntN(12))*int64(time.Hour)
			}
			began, due, cuts, cut := w.now, len(w.oracle.order), w.cuts, w.anyMisfit()
			if err := q.run(); err != nil {
				return err
			}
			if cut || cuts != w.cuts { // a lane that met no cut yet is read as it stands
				continue
			}
			if w.now-began > keepTime {
				w.saw(ReadsTooSlow) // a reader so slow is cut off
			} else {
				w.oracle.checkRead(q, due)
			}
			for range 4 {
				if err := p.pause(); err != nil {
					return err
				}
			}
		}
	})
}

func (q *query) run() error {
	w := q.w
	steps := []func() error{q.positions, q.events, q.frames, q.registry, q.table}
	switch {
	case w.broken(ReadsTableFirst):
		steps = []func() error{q.registry, q.table, q.positions, q.events, q.frames}
	case w.broken(ReadsRegistryFirst):
		steps = []func() error{q.registry, q.positions, q.events, q.frames, q.table}
	case w.broken(ReadsShardsFirst):
		steps = []func() error{q.positions, q.frames, q.events, q.registry, q.table}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// add takes a frame of the range.
func (q *query) add(f *frame) {
	if f.MaxTs < q.from || f.MinTs > q.to {
		return
	}
	for len(q.seen) <= f.id {
		q.seen = append(q.seen, false)
	}
	q.seen[f.id] = true
}

// positions reads how far each lane is routed, then how far each shard is stored.
func (q *query) positions() error {
	w := q.w
	q.routed, q.heads = make([]uint64, w.lanes), map[schemas.Shard]uint64{}
	err := q.read("read checkpoints", w.nats, func() {
		for lane := range q.routed {
			if m := w.shards.lastOf(routedOf(lane)); m != nil {
				q.routed[lane] = m.point.Source
			}
		}
	})
	if err != nil {
		return err
	}
	return q.read("read heads", w.engine, func() {
		for id, h := range w.table.heads {
			q.heads[id] = h
		}
	})
}

// events reads EVENTS above the checkpoints.
func (q *query) events() error {
	for lane, seq := range q.routed {
		err := q.list("read EVENTS", func(short func() bool) {
			for m := range q.w.events.from(laneOf(lane), seq+1) {
				if short() {
					return
				}
				if q.w.broken(ReaderReadsReplica) && m == q.w.events.lastOf(laneOf(lane)) {
					return
				}
				q.add(m.frame)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// frames reads SHARDS above the heads: which shards there are, then each.
func (q *query) frames() error {
	w := q.w
	var behind []schemas.Shard
	err := q.read("read tails", w.nats, func() {
		for _, id := range w.bucket.order {
			if m := w.shards.lastOf(shardOf(id)); m != nil && m.placed.Pos > q.heads[id] {
				behind = append(behind, id)
			}
		}
	})
	for _, id := range behind {
		if err != nil {
			return err
		}
		err = q.list("read SHARDS", func(short func() bool) {
			for m := range w.shards.from(shardOf(id), 1) {
				if short() {
					return
				}
				if m.placed.Pos > q.heads[id] {
					q.add(m.frame)
				}
			}
		})
	}
	return err
}

// list reads many messages of NATS. The server says how many there are, so an answer of
// which only a part arrived is an error.
func (q *query) list(what string, do func(short func() bool)) error {
	w, cut := q.w, false
	err := q.read(what, w.nats, func() {
		do(func() bool {
			cut = cut || w.faultTimes(AnswerShort)
			return cut
		})
	})
	if err == nil && cut && !w.broken(ShortIsWhole) {
		w.saw(ShortAnswers)
		err = errTimeout
	}
	return err
}

// registry asks which shards overlap the range.
func (q *query) registry() error {
	return q.read("list shards", q.w.nats, func() {
		for _, id := range q.w.bucket.order {
			if e := q.w.bucket.shard(id).value; e.Overlaps(q.from, q.to) {
				q.entries = append(q.entries, e)
			}
		}
	})
}

// table reads the rows of those shards.
func (q *query) table() error {
	return q.read("select", q.w.engine, func() {
		for _, e := range q.entries {
			for _, f := range q.w.table.stored(e.ID) {
				q.add(f)
			}
		}
	})
}
