package sinks

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// frameEnd is a frame of a forked shard by its headers.
type frameEnd struct {
	pos, rows uint64 // of the shard up to the frame
	ids       schemas.IDSums
}

// agreeing is the last position up to which the frames of SHARDS brought what ClickHouse has, by
// count and by the sum of the ids. gone says what erasures took.
func agreeing(frames []frameEnd, groups []tables.Group, gone []ledger.Cut) (pos uint64) {
	byPos := map[uint64]*frameEnd{}
	for i := range frames {
		byPos[frames[i].pos] = &frames[i]
	}
	var rows, ids uint64
	for _, g := range groups {
		rows, ids = rows+g.Rows, ids+g.IDs
		f := byPos[g.Pos]
		erased, known := ledger.SumIDs(gone, g.Pos)
		if f != nil && known && ledger.Known(gone, g.Pos) && f.ids.Whole() && f.rows == rows+ledger.SumCuts(gone, g.Pos) && f.ids.Sum == ids+erased {
			pos = g.Pos
		}
	}
	return pos
}

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

// judge decides, once, which frames of a forked shard ClickHouse lacks. No router can add to the
// shard any more, and no sink stores what is in it.
func (s *Sinks) judge(ctx context.Context, topic *schemas.Topic, e registry.Shard) (registry.Shard, error) {
	ref := e.Ref()
	groups, err := s.cfg.DB.Groups(ctx, ref)
	if err != nil {
		return e, err
	}
	head, rows, err := s.cfg.DB.HeadRows(ctx, ref)
	if err != nil {
		return e, err
	}
	tally, err := s.cfg.Registry.Tally(ctx, ref)
	if err != nil {
		return e, err
	}
	var frames []frameEnd
	_, err = streams.Headers(ctx, s.js, schemas.StreamShards, ref.Subject(), 1, func(m *streams.Message) error {
		if p, err := schemas.ParsePlaced(m.Header); err == nil {
			frames = append(frames, frameEnd{p.Pos, p.ShardRows, p.ShardIDs})
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	j := judgement{at: agreeing(frames, groups, tally.Gone)}
	if topic.Front() == "" {
		if err := s.judgeFrames(ctx, topic, ref, &j); err != nil {
			return e, err
		}
	}
	_, gone := tally.GoneUpTo(head)
	brought := uint64(0)
	if n := len(frames); n > 0 {
		brought = frames[n-1].rows
	}
	return s.cfg.Registry.AmendFork(ctx, ref, func(e *registry.Shard) bool {
		if e.Fork.Judged {
			return false
		}
		f := e.Fork
		f.Judged, f.At, f.Head, f.Move, f.Rows = true, j.at, e.Head(head), j.move, j.rows
		f.Kept = int64(rows+gone+j.rows) - int64(brought)
		return true
	})
}

// judgeFrames reads the frames above those that agree, and asks ClickHouse for each.
func (s *Sinks) judgeFrames(ctx context.Context, topic *schemas.Topic, ref schemas.ShardRef, j *judgement) error {
	above := j.at
	return streams.Gather(ctx, s.js, schemas.StreamShards, ref.Subject(), 1, nil, func(m *streams.Message) (bool, error) {
		p, err := schemas.ParsePlaced(m.Header)
		if err != nil {
			return true, nil // no frame: verify names it
		}
		if p.Pos <= above || p.Cleared != "" {
			return true, nil
		}
		anywhere := p
		anywhere.Pos = above + 1 // it may have come before, at another position
		stored, err := s.isStored(ctx, topic, ref, anywhere, m.Data)
		if err != nil {
			return false, fmt.Errorf("sinks: position %d of %s: %w", p.Pos, ref, err)
		}
		j.take(&p, stored)
		return len(j.move) <= ledger.MaxSpans, nil
	})
}
