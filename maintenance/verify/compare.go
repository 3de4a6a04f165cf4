package verify

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

func (v *Verifier) shard(ctx context.Context, topic *schemas.Topic, e registry.Shard, t streams.Tail, has bool, known schemas.Tail, h *held, st tables.Count, gone *goneRows) (*ShardReport, error) {
	s := &ShardReport{Name: e.Name(), Stored: st.Rows, Distinct: st.Distinct, Head: e.Head(st.Head)}
	if e.Gone() {
		return s, v.gone(ctx, s, e, t, has, gone)
	}
	tally := gone.after[e.ID]
	cut := e.Status != registry.Active && tally.Settles(t.Pos, e.SealedAt) // or has no frame
	if known.Pos > 0 {
		s.shortOf(t, known, &tally)
		gone.take(s, e.ID)
		s.compareIDs(st, gone, e.ID)
		return s, nil
	}
	switch {
	case !has && st.Rows == 0 && (e.Status == registry.Active || e.SealedAt == 0):
		return s, nil // made, and nothing came yet
	case !has && !cut:
		s.problem("%s holds no frame of it, not even the last; ClickHouse has %d rows up to position %d", schemas.StreamShards, st.Rows, st.Head)
		s.Routed, s.Expected = st.Rows, st.Rows
		return s, nil
	}
	s.Routed, s.Tail = t.ShardRows, t.Pos
	if e.Status != registry.Active && e.SealedAt != t.Pos && !cut {
		s.problem("sealed at position %d, its last frame has %d", e.SealedAt, t.Pos)
	}
	// The entry was read after the rows were counted: it may have closed meanwhile.
	if e.Status == registry.Closed && st.Head >= e.SealedAt && e.Rows != st.Rows && gone.settled(e.ID) {
		s.problem("closed with %d rows, ClickHouse has %d", e.Rows, st.Rows)
	}
	switch {
	case cut:
		s.cut(e, st, gone)
	case s.Head > t.Pos:
		s.problem("ClickHouse has position %d, the last frame is %d: %s lost its end", s.Head, t.Pos, schemas.StreamShards)
		s.Expected = t.ShardRows
	case s.Head > 0:
		if err := v.compareHead(ctx, topic, s, e, t, gone.ledger); err != nil {
			return nil, err
		}
	}
	if err := v.belowProven(ctx, s, e, t, h); err != nil {
		return nil, err
	}
	gone.take(s, e.ID)
	same := s.compareIDs(st, gone, e.ID)
	if s.missing()+s.doubled() > 0 || s.changed || !same && s.Distinct < s.Stored || s.ids.Known() && !s.ids.Whole() {
		return s, v.explain(ctx, s, e, t, gone.after[e.ID])
	}
	return s, nil
}

// compareHead reads the frame at the head: how many rows there must be up to it,
// and whether it is the frame that is stored there.
func (v *Verifier) compareHead(ctx context.Context, topic *schemas.Topic, s *ShardReport, e registry.Shard, t streams.Tail, erasures ledger.Erasures) error {
	at, err := streams.FindFrame(ctx, v.js, t.Ref.Subject(), s.Head, t.Seq)
	if err != nil {
		return err
	}
	msg, err := streams.DecideNext(ctx, v.js, schemas.StreamShards, t.Ref.Subject(), at)
	if err != nil {
		return fmt.Errorf("verify: position %d of %s: %w", s.Head, s.Name, err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil {
		return fmt.Errorf("verify: %s message %d: %w", t.Ref.Subject(), msg.Sequence, err)
	}
	if s.Expected, s.ids = p.ShardRows, p.ShardIDs; p.Pos != s.Head {
		s.problem("positions %d to %d are missing in %s", s.Head, p.Pos-1, schemas.StreamShards)
		s.Expected, s.ids = p.ShardRows-uint64(p.Rows), schemas.IDSums{}
		return nil
	}
	if e.Floor >= s.Head || p.Cleared != "" {
		return nil // its rows are gone on purpose, or the frame's events are
	}
	same, err := v.db.HasFrame(ctx, topic, e.Month, e.ID, p, msg.Data)
	if err != nil || same {
		return err
	}
	// All of it may have been erased; were any of it to stay, it would be there.
	left := uint64(p.Rows)
	if cover := erasures.Covering(p.Source(), p.MinTs, p.MaxTs); len(cover) > 0 {
		if cover.Schema() > topic.Version {
			return nil // entered since, with a newer schema: the next look tells
		}
		keep, params := cover.Keep()
		if left, err = v.db.CountFrame(ctx, topic, p, msg.Data, tables.Condition{SQL: keep, Params: params}); err != nil {
			return err
		}
	}
	if left > 0 {
		s.problem("position %d in %s is not the frame that is stored there: one of the two was rolled back", s.Head, schemas.StreamShards)
	}
	return err
}

// doubled is rows beyond the frames'.
func (s *ShardReport) doubled() uint64 { return s.Stored - min(s.Stored, s.Expected) + s.standIn }

// missing is rows the frames brought that are not there. Rows that share an id
// count once each: a client that makes its own ids and repeats one has two events.
func (s *ShardReport) missing() uint64 {
	return s.Expected - min(s.Expected, s.Stored+s.Dropped) + s.standIn
}

// brought is what the frames of a shard brought up to a position.
type brought struct {
	rows uint64
	ids  schemas.IDSums
}

// idsBetween is the sum of the ids that positions above lo and up to hi must have, and
// whether it is known.
func idsBetween(before, upTo brought, gone []ledger.Cut, lo, hi uint64) (sum uint64, ok bool) {
	sum, ok = upTo.ids.Since(before.ids)
	goneBefore, okBefore := ledger.SumIDs(gone, lo)
	goneUpTo, okUpTo := ledger.SumIDs(gone, hi)
	return sum - (goneUpTo - goneBefore), ok && okBefore && okUpTo
}

// compareIDs compares the events that ClickHouse has with those of the frames up to
// the head, where these and the erasures say which they are, and reports whether they
// are the same. As long as the counts differ, so do the sums.
func (s *ShardReport) compareIDs(st tables.Count, gone *goneRows, id schemas.Shard) (same bool) {
	erased, known := ledger.SumIDs(gone.after[id].Gone, s.Head)
	if s.ByCount = st.Rows > 0 && !(known && s.ids.Whole()); s.ByCount || st.Rows == 0 {
		return false
	}
	if !gone.settled(id) || s.missing()+s.doubled() > 0 {
		return false // under way, or named by the counts
	}
	s.changed = s.ids.Sum-erased != st.IDs
	return !s.changed
}

// explain names the positions whose rows differ from their frames'.
func (v *Verifier) explain(ctx context.Context, s *ShardReport, e registry.Shard, t streams.Tail, tally ledger.Tally) error {
	cumulative := map[uint64]brought{0: {ids: schemas.IDSums{From: 1}}} // by position
	first := uint64(0)
	_, err := streams.Headers(ctx, v.js, schemas.StreamShards, t.Ref.Subject(), 1, func(msg *streams.Message) error {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil {
			return nil // not a frame
		}
		if first == 0 {
			first = p.Pos
			cumulative[p.Pos-1] = brought{rows: p.ShardRows - uint64(p.Rows), ids: cumulative[p.Pos-1].ids}
		}
		if before, ok := cumulative[p.Pos-1]; ok && p.ShardIDs.From == p.Pos { // the first that has a sum
			before.ids.From = p.Pos
			cumulative[p.Pos-1] = before
		}
		cumulative[p.Pos] = brought{p.ShardRows, p.ShardIDs}
		return nil
	})
	if err != nil {
		return err
	}
	groups, err := v.db.Groups(ctx, e.Ref())
	if err != nil {
		return err
	}
	last, short := uint64(0), uint64(0)
	for _, g := range groups {
		pos, n, distinct := g.Pos, g.Rows, g.Distinct
		before, okBefore := cumulative[last]
		upTo, ok := cumulative[pos]
		erased := ledger.SumCuts(tally.Gone, pos) - ledger.SumCuts(tally.Gone, last)
		ids, summed := idsBetween(before, upTo, tally.Gone, last, pos)
		switch want := upTo.rows - before.rows - min(upTo.rows-before.rows, erased); {
		case !ok || !okBefore || !ledger.Known(tally.Gone, pos) || !ledger.Known(tally.Gone, last): // purged, or joined: only the totals can be compared
		case n != want:
			short += want - min(want, n)
			s.problem("positions %d to %d brought %d rows, ClickHouse has %d with %d ids", last+1, pos, want, n, distinct)
		case summed && ids == g.IDs:
		case summed || distinct < n && erased == 0:
			if err := v.standIns(ctx, s, e, t, last, pos, summed); err != nil {
				return err
			}
		}
		last = pos
	}
	s.standIn += short - min(short, s.missing()-s.standIn) // as many rows are too many elsewhere
	if s.changed && len(s.Problems) == 0 {
		s.problem("ClickHouse has as many rows up to position %d as were routed, and not the same events: ids or times are others; the frames that could tell which are gone", s.Head)
	}
	if len(s.Problems) == 0 && s.missing()+s.doubled() > 0 {
		s.problem("%d rows up to position %d were routed, %d were erased, ClickHouse has %d with %d ids", s.Expected+s.Erased, s.Head, s.Erased, s.Stored, s.Distinct)
	}
	if s.doubled() > 0 && s.Erased > 0 {
		s.problem("if ClickHouse was restored from an older copy, rows that were erased came back with it: run `almanac erase resume`")
	}
	return nil
}
