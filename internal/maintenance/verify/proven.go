package verify

import (
	"context"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
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
	s.proven = e.SealedAt // what was erased counts up to there, where no row tells of it
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
