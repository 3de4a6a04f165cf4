package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// sink is one run of a sink over all shards, beside others that do the same: it
// remembers heads from one insert to the next.
type sink struct {
	*process
	heads map[schemas.Shard]uint64
}

func newSink(w *World, name string) *process {
	return w.newProcess(name, SinkDies, SinkStalls, func(p *process) error {
		s := &sink{process: p, heads: map[schemas.Shard]uint64{}}
		for {
			if err := s.work(); err != nil {
				return err
			}
			if err := s.pause(); err != nil {
				return err
			}
		}
	})
}

// work stores one batch of one shard that is behind, or else closes a shard.
func (s *sink) work() error {
	w := s.w
	var behind []schemas.Shard
	err := s.read("watch", w.nats, func() {
		for _, id := range w.bucket.order {
			if m := w.shards.lastOf(shardOf(id)); m != nil && s.heads[id] < m.placed.Pos {
				behind = append(behind, id)
			}
		}
	})
	if err != nil {
		return err
	}
	if len(behind) == 0 || w.coin(8) {
		return s.closeOne()
	}
	return s.advance(behind[w.rng.IntN(len(behind))])
}

// advance brings one batch of a shard into the table.
func (s *sink) advance(id schemas.Shard) error {
	head, known := s.heads[id]
	if !known {
		var err error
		if head, err = s.head(id); err != nil {
			return err
		}
		s.heads[id] = head
	}
	frames, last, err := s.fetch(id, head)
	if errors.Is(err, errGap) {
		s.w.alarms[id] = err // until a fetch succeeds
		s.w.saw(GapsNamed)
	}
	if err != nil || len(frames) == 0 {
		return err
	}
	delete(s.w.alarms, id)
	moved, err := s.insert(id, head, last, frames)
	if err != nil {
		delete(s.heads, id)
		return err
	}
	s.heads[id] = moved
	return nil
}

func (s *sink) head(id schemas.Shard) (head uint64, err error) {
	err = s.read("read head", s.w.engine, func() { head = s.w.table.heads[id] })
	return head, err
}

// fetch reads frames that follow the head.
func (s *sink) fetch(id schemas.Shard, head uint64) (frames []*frame, last uint64, err error) {
	w := s.w
	last = head
	want := 1 + w.rng.IntN(w.insertFrames)
	gap := error(nil)
	err = s.read("fetch", w.nats, func() {
		prev := ""
		for m := range w.shards.from(shardOf(id), 1) {
			if m.placed.Pos <= head {
				continue
			}
			if gap = Follows(head, len(frames), prev, m.placed); gap != nil && !w.broken(NoPositionCheck) {
				return
			}
			frames, last, prev, gap = append(frames, m.frame), m.placed.Pos, digest(m.frame), nil
			if len(frames) == want {
				return
			}
		}
	})
	return frames, last, errors.Join(err, gap)
}

// maxBurnt bounds the attempts from one head.
const maxBurnt = 10

// insert stores frames after the head and returns the head as read back.
func (s *sink) insert(id schemas.Shard, head, last uint64, frames []*frame) (uint64, error) {
	w := s.w
	for attempt := 0; attempt < maxBurnt; attempt++ {
		in := insert{Insert: tables.Insert{Topic: &topic, Shard: id, Head: head, Attempt: attempt}, frames: frames, last: last}
		if w.broken(NoAttempts) {
			in.Attempt = 0
		}
		in.token = in.Token()
		if w.broken(RangeToken) {
			in.token = fmt.Sprintf("%s:%d-%d:%d", id, head+1, last, attempt)
		}
		sendErr := s.send(in)
		if errors.Is(sendErr, errCrashed) || errors.Is(sendErr, errEnded) {
			return 0, sendErr
		}
		if w.broken(NoReadBack) && sendErr == nil {
			return last, nil
		}
		moved, err := s.head(id)
		switch {
		case err != nil:
			return 0, err
		case moved > head:
			return moved, nil
		case sendErr != nil:
			return 0, sendErr
		}
		w.saw(TokensMet)
	}
	return 0, fmt.Errorf("shard %s: %d tokens after position %d were burnt", id, maxBurnt, head)
}

// send makes the insert in two steps, the plan and the data, with time between
// them. What is late may be late before either.
func (s *sink) send(in insert) error {
	w := s.w
	q := in
	err := s.ask(call{what: "plan insert", at: w.engine, do: func() error { return w.table.plan(w, &q) }, late: func() {
		late := in
		if w.table.plan(w, &late) == nil {
			w.later(w.engine, func() { _ = w.table.finish(w, &late) }) // the answer is lost
		}
	}})
	if errors.Is(err, errHeadMoved) {
		w.saw(InsertHeadMoved)
	}
	if err != nil {
		return err
	}
	return s.ask(call{what: "finish insert", at: w.engine, do: func() error { return w.table.finish(w, &q) }, late: func() {
		late := q
		_ = w.table.finish(w, &late) // the answer is lost
	}})
}

// closeOne closes a sealed shard whose last frame is stored.
func (s *sink) closeOne() error {
	w := s.w
	var sealed []registry.Shard
	err := s.read("list shards", w.nats, func() {
		for _, id := range w.bucket.order {
			if e := w.bucket.shard(id).value; e.Status == registry.Sealed {
				sealed = append(sealed, e)
			}
		}
	})
	if err != nil || len(sealed) == 0 {
		return err
	}
	e := sealed[w.rng.IntN(len(sealed))]
	head, err := s.head(e.ID)
	if err != nil || head < e.SealedAt {
		return err
	}
	var rows uint64
	var stored []*frame
	err = s.read("count rows", w.engine, func() {
		rows, stored = w.table.rows[e.ID], w.table.stored(e.ID)
	})
	if err != nil || rows == 0 {
		return err
	}
	lo := slices.MinFunc(stored, func(a, b *frame) int { return int(a.MinTs - b.MinTs) }).MinTs
	hi := slices.MaxFunc(stored, func(a, b *frame) int { return int(a.MaxTs - b.MaxTs) }).MaxTs
	return s.close(e.ID, rows, lo, hi)
}

// stored are a shard's frames, as often as they stand in the table.
func (t *table) stored(id schemas.Shard) (out []*frame) {
	for i := range t.parts {
		if t.parts[i].shard == id {
			out = append(out, t.parts[i].frames...)
		}
	}
	return out
}

// topic is what tokens name.
var topic = schemas.Topic{Name: "app"}
