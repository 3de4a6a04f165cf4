package sinks

import (
	"context"
	"fmt"
	"math"

	"github.com/almanac-events/almanac/internal/reconcile"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// judgement is what is decided of a fork.
type judgement struct {
	at   uint64 // the last position that both have
	move []ledger.Span
	rows uint64 // in those
}

// take adds the next frame: one that ClickHouse lacks is to be moved.
func (j *judgement) take(p *schemas.Placed, stored bool) {
	switch n := len(j.move); {
	case stored && n == 0:
		j.at = p.Pos
	case stored: // it came again: what ClickHouse has of it stays
	case n > 0 && j.move[n-1].To+1 == p.Pos:
		j.move[n-1].To, j.rows = p.Pos, j.rows+uint64(p.Rows)
	default:
		j.move, j.rows = append(j.move, ledger.Span{From: p.Pos, To: p.Pos}), j.rows+uint64(p.Rows)
	}
}

// examine decides, once, which frames of a forked shard ClickHouse lacks. No router can add to the
// shard any more, and no sink stores what is in it.
func (s *Sinks) examine(ctx context.Context, topic *schemas.Topic, e registry.Shard) (registry.Shard, error) {
	ref := e.Ref()
	if err := s.unlessBehind(ctx, topic); err != nil {
		return e, err
	}
	was, err := s.cfg.Registry.ErasureRecord(ctx, ref) // before the rows: what goes after it is in the record that is read later
	if err != nil {
		return e, err
	}
	groups, err := s.cfg.DB.Groups(ctx, ref)
	if err != nil {
		return e, err
	}
	if err := s.unlessBehind(ctx, topic); err != nil {
		return e, err
	}
	head, rows := endOf(groups)
	record, err := s.cfg.Registry.ErasureRecord(ctx, ref)
	if err != nil {
		return e, err
	}
	_, gone := record.GoneUpTo(math.MaxUint64)
	if e, err = s.cfg.Registry.Shard(ctx, ref); err != nil { // after the rows: its floor is raised before they go
		return e, err
	}
	if topic.Front() != "" && e.WentBack(head, rows+gone) {
		return e, wentBack(&e, head, rows+gone)
	}
	var frames []reconcile.Frame
	_, err = streams.Headers(ctx, s.js, schemas.StreamShards, ref.Subject(), 1, func(m *streams.Message) error {
		if p, err := schemas.ParsePlaced(m.Header); err == nil {
			frames = append(frames, reconcile.FrameOf(&p))
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	all, _ := reconcile.Compare(frames, groups, record.Gone)
	j := judgement{at: reconcile.Agree(all)}
	if topic.Front() == "" {
		if err := s.examineFrames(ctx, topic, ref, &j); err != nil {
			return e, err
		}
	}
	brought := uint64(0)
	if n := len(frames); n > 0 {
		brought = frames[n-1].ShardRows
	}
	return s.cfg.Registry.AmendFork(ctx, ref, func(e *registry.Shard) bool {
		if e.Fork.Examined {
			return false
		}
		f := e.Fork
		f.Examined, f.At, f.Head, f.Move, f.Rows = true, j.at, e.Head(head), j.move, j.rows
		f.Kept = int64(rows+gone+j.rows) - int64(brought)
		least, _ := was.GoneUpTo(math.MaxUint64)
		f.LeftHead, f.LeftRows = head, rows+least
		return true
	})
}

// endOf is the head of rows by position, and how many they are.
func endOf(groups []tables.Group) (head, rows uint64) {
	for _, g := range groups {
		head, rows = max(head, g.Pos), rows+g.Rows
	}
	return head, rows
}

// wentBack says that ClickHouse lost rows of a shard since it left its lane. Its frames stay in SHARDS until the rows are back: of a
// front the lane goes on behind the last record that was stored, so nothing else brings them.
func wentBack(e *registry.Shard, head, rows uint64) error {
	return fmt.Errorf("sinks: %s: %w: it left its lane with %d rows up to position %d, and ClickHouse accounts for %d up to %d; restore the table from a copy that has them: its frames stay in %s until then, its lane goes on in another shard, and `almanac repair %s` names what is lost",
		e.Name(), ErrWentBack, e.Fork.LeftRows, e.Fork.LeftHead, rows, e.Head(head), schemas.StreamShards, e.Topic)
}

// examineFrames reads the frames above those that agree, and asks ClickHouse for each.
func (s *Sinks) examineFrames(ctx context.Context, topic *schemas.Topic, ref schemas.ShardRef, j *judgement) error {
	above := j.at
	return streams.Gather(ctx, s.js, schemas.StreamShards, ref.Subject(), 1, nil, func(m *streams.Message) (bool, error) {
		p, err := schemas.ParsePlaced(m.Header)
		if err != nil {
			return true, nil // no frame: verify names it
		}
		if p.Pos <= above || p.Cleared != "" {
			return true, nil
		}
		stored, err := s.cameBefore(ctx, topic, ref, &p, m.Data, above)
		if err != nil {
			return false, fmt.Errorf("sinks: position %d of %s: %w", p.Pos, ref, err)
		}
		j.take(&p, stored)
		return len(j.move) <= ledger.MaxSpans, nil
	})
}

// cameBefore reports whether ClickHouse has a frame at any position above one, where it came before at
// another, or whether nothing of it may be stored.
func (s *Sinks) cameBefore(ctx context.Context, topic *schemas.Topic, ref schemas.ShardRef, p *schemas.Placed, payload []byte, above uint64) (bool, error) {
	erasures, err := s.ledger.ForWriter(ctx, ref.Topic)
	if err != nil {
		return false, err
	}
	cover := erasures.Covering(p.Source(), p.MinTs, p.MaxTs)
	if v := max(p.Schema, cover.Schema()); topic.Version < v {
		if topic, _, err = s.table(ctx, ref.Topic, v); err != nil {
			return false, err
		}
	}
	var r frame.Reader
	if err := r.Open(payload, topic, p.Schema); err != nil {
		return false, err
	}
	has, err := s.cfg.DB.Holds(ctx, ref, &p.Frame, &r, above+1, math.MaxUint64)
	if err != nil || has || len(cover) == 0 {
		return has, err
	}
	keep, params := cover.Keep()
	left, err := s.cfg.DB.CountFrame(ctx, topic, *p, payload, tables.Condition{SQL: keep, Params: params})
	return err == nil && left == 0, err
}
