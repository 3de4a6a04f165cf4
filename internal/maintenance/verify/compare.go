package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/reconcile"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// compared is one shard with its frames and rows compared.
type compared struct {
	*ShardReport
	kept  int64 // rows that no checkpoint counts
	taken bool  // from the proof of an earlier run
}

// compareShards compares every shard that has an entry.
func (v *Verifier) compareShards(ctx context.Context, l *look) error {
	for some := range slices.Chunk(l.entries, aheadShards) {
		a, err := v.askAhead(ctx, l, some)
		if err != nil {
			return err
		}
		for i := range some {
			c, err := v.compareShard(ctx, l, a, &some[i])
			if err != nil {
				return err
			}
			l.shards = append(l.shards, c)
			v.next()
		}
	}
	return nil
}

// compareShard compares one, or takes it from an earlier proof.
func (v *Verifier) compareShard(ctx context.Context, l *look, a *ahead, e *registry.Shard) (c compared, err error) {
	tail, has := l.tails[e.ID]
	tail.Ref = e.Ref()
	lost, err := v.lostEnd(ctx, *e, tail, l.routed)
	if err != nil {
		return c, err
	}
	h := l.frames.held[e.ID]
	s, taken := l.proofs.taken(e, tail, &l.gone, h)
	if taken = taken && lost.Pos == 0; !taken { // a proof does not know of a lost end
		if s, err = v.shard(ctx, l.topic, a, *e, tail, has, lost, h, l.stored[e.ID], &l.gone); err != nil {
			return c, err
		}
	}
	verifyEntry(s, l.present[e.ID], h, l.stored[e.ID])
	if h != nil {
		if err = v.cutOff(ctx, s, tail, h); err != nil {
			return c, err
		}
	}
	if lost.Pos == 0 {
		l.proofs.prove(e, s, l.stored[e.ID], tail, &l.gone)
	}
	sayFork(s, e)
	return compared{ShardReport: s, kept: e.KeptRows(), taken: taken}, nil
}

// shard compares the rows of one with its last frame, and what SHARDS has of it. lost is the end that SHARDS lost, of
// position 0 for none.
func (v *Verifier) shard(ctx context.Context, topic *schemas.Topic, a *ahead, e registry.Shard, t streams.Tail, has bool, lost checkpoint.Tail, h *held, st tables.Count, gone *goneRows) (*ShardReport, error) {
	s := &ShardReport{Name: e.Name(), Stored: st.Rows, Distinct: st.Distinct, Head: e.Head(st.Head)}
	if e.Gone() {
		return s, v.gone(ctx, s, e, t, has, gone)
	}
	record := gone.after[e.ID]
	cut := e.Status != registry.Active && record.Stored(t.Pos, e.SealedAt) // or has no frame
	if lost.Pos > 0 {
		s.shortOf(t, lost, &record)
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
	if e.Status == registry.Closed && st.Head >= e.SealedAt && e.Rows != st.Rows && gone.stored(e.ID) {
		s.problem("closed with %d rows, ClickHouse has %d", e.Rows, st.Rows)
	}
	switch {
	case cut:
		s.cut(e, st, gone)
	case s.Head > t.Pos:
		s.problem("ClickHouse has position %d, the last frame is %d: %s lost its end", s.Head, t.Pos, schemas.StreamShards)
		s.Expected = t.ShardRows
	case s.Head > 0:
		if err := v.compareHead(ctx, topic, a, s, e, t); err != nil {
			return nil, err
		}
	}
	if err := v.belowProven(ctx, s, e, t, h); err != nil {
		return nil, err
	}
	gone.take(s, e.ID)
	same := s.compareIDs(st, gone, e.ID)
	if same {
		moved, err := v.moved(ctx, a, s, e, t, h, record.Gone)
		if err != nil {
			return nil, err
		}
		if moved {
			return s, v.explain(ctx, s, e, t, record)
		}
	}
	if s.missing()+s.doubled() > 0 || s.changed || !same && s.Distinct < s.Stored {
		return s, v.explain(ctx, s, e, t, gone.after[e.ID])
	}
	return s, nil
}

// compareHead reads the frame at the head: how many rows there must be up to it,
// and whether it is the frame that is stored there.
func (v *Verifier) compareHead(ctx context.Context, topic *schemas.Topic, a *ahead, s *ShardReport, e registry.Shard, t streams.Tail) error {
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
	s.summed, s.ids = true, p.ShardIDs
	if e.Floor >= s.Head || p.Cleared != "" {
		return nil // its rows are gone on purpose, or the frame's events are
	}
	if p.Schema > topic.Version {
		return nil // made since: the next look tells
	}
	found, err := reconcile.Look(ctx, a, topic, e.Ref(), &p, msg.Data, reconcile.Gone(ctx, v.reg, e.Ref()))
	if err == nil && (found == reconcile.Absent || found == reconcile.Other) {
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

// compareIDs compares the events that ClickHouse has with those of the frames up to
// the head, where these and the erasures say which they are, and reports whether they
// are the same. As long as the counts differ, so do the sums.
func (s *ShardReport) compareIDs(st tables.Count, gone *goneRows, id schemas.Shard) (same bool) {
	if s.ByCount = st.Rows > 0 && !s.summed; s.ByCount || st.Rows == 0 {
		return false
	}
	if !gone.stored(id) || s.missing()+s.doubled() > 0 {
		return false // under way, or named by the counts
	}
	s.changed = s.ids-ledger.SumIDs(gone.after[id].Gone, s.Head) != st.IDs
	return !s.changed
}

// explain names the positions whose rows differ from their frames'.
func (v *Verifier) explain(ctx context.Context, s *ShardReport, e registry.Shard, t streams.Tail, record ledger.ErasureRecord) error {
	var frames []reconcile.Frame
	_, err := streams.Headers(ctx, v.js, schemas.StreamShards, t.Ref.Subject(), 1, func(msg *streams.Message) error {
		if p, err := schemas.ParsePlaced(msg.Header); err == nil {
			frames = append(frames, reconcile.FrameOf(&p))
		}
		return nil
	})
	if err != nil {
		return err
	}
	groups, err := v.db.Groups(ctx, e.Ref())
	if err != nil {
		return err
	}
	all, _ := reconcile.Compare(frames, groups, record.Gone)
	short := uint64(0)
	for _, d := range reconcile.Differing(all) {
		switch {
		case d.Have != d.Want:
			short += d.Want - min(d.Want, d.Have)
			s.problem("%s brought %d rows, ClickHouse has %d with %d ids", positions(d.Lo, d.Hi), d.Want, d.Have, d.Distinct)
		case d.Summed || ledger.SumCuts(record.Gone, d.Hi) == ledger.SumCuts(record.Gone, d.Lo):
			if err := v.standIns(ctx, s, e, t, d.Lo, d.Hi, d.Summed); err != nil {
				return err
			}
		}
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

// positions names those above lo and up to hi.
func positions(lo, hi uint64) string {
	if hi == lo+1 {
		return fmt.Sprintf("position %d", hi)
	}
	return fmt.Sprintf("positions %d to %d", lo+1, hi)
}
