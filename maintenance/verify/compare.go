package verify

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/registry"
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
		return s, nil
	}
	switch {
	case !has && st.Rows == 0 && e.Status == registry.Active:
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
	if s.missing()+s.doubled() > 0 || s.Distinct < s.Stored {
		return s, v.explain(ctx, s, e, t, gone.after[e.ID])
	}
	return s, nil
}

// compareHead reads the frame at the head: how many rows there must be up to it,
// and whether it is the frame that is stored there.
func (v *Verifier) compareHead(ctx context.Context, topic *schemas.Topic, s *ShardReport, e registry.Shard, t streams.Tail, ledger *registry.Ledger) error {
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
	if s.Expected = p.ShardRows; p.Pos != s.Head {
		s.problem("positions %d to %d are missing in %s", s.Head, p.Pos-1, schemas.StreamShards)
		s.Expected = p.ShardRows - uint64(p.Rows)
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
	if cover := ledger.Covering(p.Source(), p.MinTs, p.MaxTs); len(cover) > 0 {
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

// explain names the positions whose rows differ from their frames'.
func (v *Verifier) explain(ctx context.Context, s *ShardReport, e registry.Shard, t streams.Tail, tally registry.Tally) error {
	cumulative := map[uint64]uint64{0: 0} // position: rows up to it
	first := uint64(0)
	_, err := streams.Headers(ctx, v.js, schemas.StreamShards, t.Ref.Subject(), 1, func(msg *streams.Message) error {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil {
			return nil // not a frame
		}
		if first == 0 {
			first = p.Pos
			cumulative[p.Pos-1] = p.ShardRows - uint64(p.Rows)
		}
		cumulative[p.Pos] = p.ShardRows
		return nil
	})
	if err != nil {
		return err
	}
	groups, err := v.db.Groups(ctx, e.Topic, e.Month, e.ID)
	if err != nil {
		return err
	}
	last := uint64(0)
	for _, g := range groups {
		pos, n, distinct := g.Pos, g.Rows, g.Distinct
		before, okBefore := cumulative[last]
		upTo, ok := cumulative[pos]
		erased := registry.SumCuts(tally.Gone, pos) - registry.SumCuts(tally.Gone, last)
		switch want := upTo - before - min(upTo-before, erased); {
		case !ok || !okBefore: // purged: only the totals can be compared
		case n != want:
			s.problem("positions %d to %d brought %d rows, ClickHouse has %d with %d ids", last+1, pos, want, n, distinct)
		case distinct < n && erased == 0:
			if err := v.standIns(ctx, s, e, t, last, pos, distinct); err != nil {
				return err
			}
		}
		last = pos
	}
	if len(s.Problems) == 0 && s.missing()+s.doubled() > 0 {
		s.problem("%d rows up to position %d were routed, %d were erased, ClickHouse has %d with %d ids", s.Expected+s.Erased, s.Head, s.Erased, s.Stored, s.Distinct)
	}
	if s.doubled() > 0 && s.Erased > 0 {
		s.problem("if ClickHouse was restored from an older copy, rows that were erased came back with it: run `almanac erase resume`")
	}
	return nil
}
