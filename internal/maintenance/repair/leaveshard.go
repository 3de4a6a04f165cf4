package repair

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// planLeave adds the active shards of which ClickHouse has more than SHARDS, where nothing waits to be routed that could
// be the same again: SHARDS was restored from an older copy, and the stream that it was routed from too. Their lanes
// go on in other shards, and a sink settles them as it does shards that forked (package sinks, fork.go).
func (r *Repairer) planLeave(ctx context.Context, t *schemas.Topic, p *Plan) error {
	routed, err := streams.Checkpoints(ctx, r.js, t.Name)
	if err != nil {
		return err
	}
	misfits, err := streams.Misfits(ctx, r.js, t, routed)
	if err != nil || len(misfits) > 0 {
		return err
	}
	copies, err := r.reg.Copies(ctx, t.Name)
	if err != nil {
		return err
	}
	for lane, known := range copies {
		if cp := routed[lane]; cp.Forgets(&known) {
			return nil // what SHARDS lost is routed again
		}
	}
	waiting, err := streams.Unrouted(ctx, r.js, t, routed, misfits, streams.Everything)
	if err != nil || waiting > 0 {
		return err
	}
	heads, err := r.db.Heads(ctx, t.Name)
	if errors.Is(err, tables.ErrNoTable) {
		return nil
	}
	if err != nil {
		return err
	}
	shards, err := r.lists(p).Shards(ctx, t.Name, 0)
	if err != nil {
		return err
	}
	for i := range shards {
		s := &shards[i]
		if s.Status != registry.Active || s.Fork != nil || heads[s.ID] == 0 {
			continue
		}
		last, err := r.lastFrame(ctx, s.Ref()) // after the head
		if err != nil {
			return err
		}
		if cp := routed[strconv.Itoa(s.ID.Lane())]; cp.Tails[s.ID].Pos >= heads[s.ID] {
			continue // the frame alone is gone: the lane goes on after it
		}
		if heads[s.ID] > last.Pos {
			p.add(Action{Do: LeaveShard, Topic: t.Name, Where: s.Ref().String(), From: last.Pos + 1, To: heads[s.ID], Source: "ClickHouse", ref: s.Ref(), topic: t,
				Detail: fmt.Sprintf("ClickHouse has position %d, and %s ends at %d: its lane goes on in another shard", heads[s.ID], schemas.StreamShards, last.Pos)})
		}
	}
	return nil
}

// leaveShard takes a shard out of its lane, unless ClickHouse has less of it than when that was planned.
func (r *Repairer) leaveShard(ctx context.Context, a *Action) error {
	record, err := r.reg.ErasureRecord(ctx, a.ref)
	if err != nil {
		return err
	}
	end, err := r.db.StoredEnd(ctx, a.ref, a.topic.Front() != "")
	if err != nil {
		return err
	}
	e, err := r.reg.Shard(ctx, a.ref)
	if err != nil {
		return err
	}
	if now := e.Head(end.Head); now < a.To {
		return fmt.Errorf("%w: ClickHouse had position %d of %s when this was planned, and has %d; run `almanac repair` again", registry.ErrConflict, a.To, a.ref, now)
	}
	gone, _ := record.GoneUpTo(end.Head)
	fork := registry.Fork{LeftHead: end.Head, LeftRows: end.Rows + gone}
	if a.topic.Front() != "" {
		cp, err := streams.Checkpoint(ctx, r.js, schemas.RoutedSubject(a.Topic, strconv.Itoa(e.ID.Lane())))
		if err != nil {
			return err
		}
		if end.Record > cp.Source { // the front was restored too: what was written since is put again
			if fork.Stored, err = r.reg.RecordAt(ctx, a.topic, end.Record, end.At); err != nil {
				return err
			}
		}
	}
	return r.reg.Leave(ctx, a.ref, fork)
}

// planWentBack names the rows that ClickHouse lost of a shard which forked, since it left its lane. No action takes the place of a copy
// that has them: settling the shard without takes frames out of SHARDS, which may be all there is of some, and counts the rest as never
// accepted.
func (t *found) planWentBack(ref schemas.ShardRef, p *Plan) {
	e, record, c := t.entries[ref.ID], t.erasureRecords[ref.ID], t.counts[ref.ID]
	_, gone := record.GoneUpTo(math.MaxUint64)
	if !e.Forked() || t.topic.Front() == "" && !e.Fork.Examined || !e.WentBack(c.Head, c.Rows+gone) {
		return // one that is not examined loses nothing: what ClickHouse lacks goes to another
	}
	from := e.Head(c.Head) + 1
	if from > e.Fork.LeftHead {
		from = 1
	}
	rows := e.Fork.LeftRows - min(e.Fork.LeftRows, c.Rows+gone)
	p.add(Action{Do: Lost, Topic: ref.Topic, Where: ref.String(), From: from, To: e.Fork.LeftHead, Rows: rows, ref: ref, topic: &t.topic,
		Detail: fmt.Sprintf("%d rows, which ClickHouse had when the shard left its lane: restore the table from a copy that has them; until then the shard stays as it is, with its frames in %s, and its lane goes on in another", rows, schemas.StreamShards)})
}
