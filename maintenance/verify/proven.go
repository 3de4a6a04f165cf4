package verify

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// cut expects of a shard whose end a repair settled what it closed with, or, until
// then, what is stored: the frames that told are gone.
func (s *ShardReport) cut(e registry.Shard, st tables.Count, gone *goneRows) {
	rows := st.Rows
	if e.Status == registry.Closed {
		rows = e.Rows
	}
	before := gone.before[e.ID]
	erased, _ := before.GoneUpTo(e.SealedAt)
	s.Tail, s.Routed, s.Expected = e.SealedAt, rows+erased, rows+erased
}

// belowProven expects more than the frames up to the head where something proves
// that ClickHouse had more: a closed shard was stored whole, and SHARDS is only
// purged below what was seen stored. Without that, rows lost at a shard's end are
// the same as rows that did not come yet.
func (v *Verifier) belowProven(ctx context.Context, s *ShardReport, e registry.Shard, t streams.Tail, h *held) error {
	proven, rows := uint64(0), uint64(0)
	if h != nil && h.first > 1 && t.Cleared == "" {
		proven, rows = h.first-1, h.before
	}
	if e.Status == registry.Closed && s.Tail >= e.SealedAt {
		proven, rows = e.SealedAt, s.Routed
	}
	if s.Head >= proven || s.Expected >= rows {
		return nil
	}
	// The rows were counted before all this was read.
	heads, err := v.db.Heads(ctx, e.Topic)
	if err != nil {
		return err
	}
	head := e.Head(heads[e.ID])
	if head >= proven {
		return nil
	}
	s.Expected, s.proven = rows, proven
	s.problem("all up to position %d was stored, ClickHouse has it up to %d", proven, head)
	return nil
}

// standIns names a stretch of positions (above lo, up to hi) that has as many rows
// as it should, of which some are there twice in place of others. A client that
// repeats itself has rows that are the same too: the frames tell. distinct is the
// ids ClickHouse has there.
func (v *Verifier) standIns(ctx context.Context, s *ShardReport, e registry.Shard, t streams.Tail, lo, hi, distinct uint64) error {
	copies, err := v.db.Copies(ctx, e.Topic, e.Month, e.ID, lo, hi)
	if err != nil || copies == 0 {
		return err
	}
	topic, err := v.reg.Topic(ctx, e.Topic)
	if err != nil {
		return err
	}
	from, err := streams.FindFrame(ctx, v.js, t.Ref.Subject(), lo+1, t.Seq)
	if err != nil {
		return err
	}
	ids := map[schemas.ID]struct{}{} // those of one insert
	var frames schemas.FrameReader
	err = streams.Gather(ctx, v.js, schemas.StreamShards, t.Ref.Subject(), from, nil, func(msg *streams.Message) (bool, error) {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil || p.Pos > hi || p.Cleared != "" {
			return false, err
		}
		if err := frames.Open(msg.Data, &topic, p.Schema); err != nil {
			return false, fmt.Errorf("verify: position %d of %s: %w", p.Pos, s.Name, err)
		}
		for i := range frames.Rows() {
			ids[frames.ID(i)] = struct{}{}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if n := uint64(len(ids)); n > distinct {
		s.standIn += n - distinct
		s.problem("positions %d to %d have as many rows as they brought, but %d of their events are missing and others are there twice", lo+1, hi, n-distinct)
	}
	return nil
}
