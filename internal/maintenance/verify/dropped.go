package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// gone accounts for a shard that retention dropped: its last frame's mark
// still says how many events were routed, its entry how many rows were dropped,
// and ClickHouse must not have any. A difference between the two is missing, as it
// was before the drop.
// Rows that were erased before are in neither number.
func (v *Verifier) gone(ctx context.Context, s *ShardReport, e registry.Shard, t streams.Tail, has bool, gone *goneRows) error {
	s.Dropped = e.DroppedRows
	s.Routed, s.Expected, s.Tail = e.DroppedRows, e.DroppedRows, e.SealedAt
	s.Note = fmt.Sprintf("%s, dropped %s: %d rows", e.DropReason, e.DroppedAt.UTC().Format(time.RFC3339), e.DroppedRows)
	switch {
	case has && t.Pos != e.SealedAt:
		s.problem("sealed at position %d and dropped, its last frame has %d", e.SealedAt, t.Pos)
	case has:
		s.Routed, s.Expected = t.ShardRows, t.ShardRows
		// Not less than nothing: what an erasure had counted and not taken yet when the
		// shard was marked is among the dropped.
		a := gone.after[e.ID]
		_, most := a.GoneUpTo(s.Tail)
		s.Erased = erasedOf(s.Expected, s.Dropped, 0, most)
		s.Expected -= s.Erased
	case e.SealedAt > 0:
		if record := gone.after[e.ID]; !record.Stored(0, e.SealedAt) {
			s.problem("dropped, and %s does not even hold the mark of its last frame; run `almanac repair %s`", schemas.StreamShards, e.Topic)
		}
	}
	if s.Stored == 0 {
		return nil
	}
	// They were counted before the entry was read: it may have gone meanwhile.
	_, rows, err := v.db.HeadRows(ctx, e.Ref())
	if err != nil {
		return err
	}
	s.Stored, s.Distinct = 0, 0
	if rows > 0 && e.Status == registry.Dropped {
		s.Stored, s.Distinct, s.Dropped = rows, rows, s.Dropped-min(s.Dropped, rows)
		s.problem("%s, and ClickHouse has %d rows again; the janitor drops them in its next round, run `almanac doctor` if it does not", s.Note, rows)
	}
	if s.missing() > 0 {
		s.problem("%d events were routed, %d rows were there when it was dropped", s.Expected, s.Dropped)
	}
	return nil
}
