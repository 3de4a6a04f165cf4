package sinks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/frame"
)

// A shard that forked is settled by the sink that owns it, once its lane's router sealed it:
//
//	decide (once) ─▶ entry of the new shard ─▶ frames, one by one ─▶ delete them ─▶ erasure record ─▶ done
//
// The nth frame that is moved has position n in the new shard, and is published where the one
// before it is the last: of two sinks one wins, and one that was killed goes on after the last
// frame that is there. Frames are deleted once all of them are in the new shard.

// resolveFork settles a forked shard that was sealed.
func (s *Sinks) resolveFork(ctx context.Context, e registry.Shard) error {
	topic, _, err := s.table(ctx, e.Topic, 0)
	if err != nil {
		return err
	}
	if !e.Fork.Examined {
		if e, err = s.examine(ctx, topic, e); err != nil {
			return err
		}
		s.cfg.Crash.at("sink.fork-judged")
	}
	if err := s.moveFrames(ctx, topic, e); err != nil {
		return err
	}
	s.cfg.Crash.at("sink.fork-moved")
	if err := s.unlessWentBack(ctx, e.Ref()); err != nil {
		return err
	}
	if err := s.deleteForked(ctx, e); err != nil {
		return err
	}
	end := max(e.Fork.Head, e.Fork.At)
	if _, err := s.cfg.Registry.AmendErasureRecord(ctx, e.Ref(), func(t *ledger.ErasureRecord) bool {
		before := t.PurgedPositions()
		for pos := e.Fork.At + 1; pos <= end && len(t.Purged) < ledger.MaxSpans; pos++ {
			t.AddPurged(pos)
		}
		return t.PurgedPositions() != before
	}); err != nil {
		return err
	}
	_, rows, err := s.cfg.DB.HeadRows(ctx, e.Ref())
	if err != nil {
		return err
	}
	s.cfg.Crash.at("sink.fork-settled")
	_, err = s.cfg.Registry.AmendFork(ctx, e.Ref(), func(e *registry.Shard) bool {
		if e.Fork.Done {
			return false
		}
		e.Fork.Done, e.SealedAt, e.Rows = true, end, rows
		return true
	})
	return err
}

// unlessWentBack refuses what takes frames out of SHARDS where ClickHouse lost rows since they were compared with it.
func (s *Sinks) unlessWentBack(ctx context.Context, ref schemas.ShardRef) error {
	head, rows, err := s.cfg.DB.HeadRows(ctx, ref)
	if err != nil {
		return err
	}
	record, err := s.cfg.Registry.ErasureRecord(ctx, ref)
	if err != nil {
		return err
	}
	e, err := s.cfg.Registry.Shard(ctx, ref)
	if err != nil {
		return err
	}
	if _, gone := record.GoneUpTo(math.MaxUint64); e.WentBack(head, rows+gone) {
		return wentBack(&e, head, rows+gone)
	}
	return nil
}

// moveFrames publishes what ClickHouse lacks of a forked shard to the shard that takes it.
func (s *Sinks) moveFrames(ctx context.Context, topic *schemas.Topic, e registry.Shard) error {
	n := e.Fork.Frames()
	if n == 0 {
		return nil
	}
	to := schemas.ShardRef{Topic: e.Topic, Month: e.Month, ID: e.Fork.To}
	ended := e.Ended
	if ended.Compare(e.Order.Point) < 0 { // not known
		ended = e.Order.Point
	}
	err := s.cfg.Registry.RestoreShard(ctx, nil, registry.Shard{
		Topic: e.Topic, Month: e.Month, ID: to.ID, Status: registry.Sealed, SealedAt: n, Rows: e.Fork.Rows, Reason: "moved",
		// The lane's next is younger, which tells of what the lane left last: it was made where this one ended, or above.
		Order: registry.Order{Turn: e.Order.Turn, Point: ended}, CreatedAt: e.CreatedAt.Add(time.Nanosecond), LastWriteAt: e.LastWriteAt, MinTs: e.Month.Start(), MaxTs: e.Month.End() - 1,
	})
	if err != nil && !errors.Is(err, registry.ErrConflict) {
		return err
	}
	var last schemas.Placed
	var lastSeq uint64
	prev := ""
	msg, err := streams.DecideLast(ctx, s.js, schemas.StreamShards, to.Subject())
	switch {
	case err == nil:
		if last, err = schemas.ParsePlaced(msg.Header); err != nil {
			return fmt.Errorf("sinks: end of %s: %w", to, err)
		}
		lastSeq, prev = msg.Sequence, schemas.Digest(msg.Data)
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return fmt.Errorf("sinks: end of %s: %w", to, err)
	}
	if last.Pos >= n {
		return nil
	}
	nth, reader := uint64(0), frame.Reader{}
	err = streams.Gather(ctx, s.js, schemas.StreamShards, e.Ref().Subject(), 1, nil, func(m *streams.Message) (bool, error) {
		p, err := schemas.ParsePlaced(m.Header)
		if err != nil || !within(e.Fork.Move, p.Pos) {
			return true, nil
		}
		if nth++; nth <= last.Pos {
			return true, nil
		}
		if topic.Version < p.Schema {
			if topic, _, err = s.table(ctx, e.Topic, p.Schema); err != nil {
				return false, err
			}
		}
		if err := reader.Open(m.Data, topic, p.Schema); err != nil {
			return false, fmt.Errorf("sinks: position %d of %s: %w", p.Pos, e.Name(), err)
		}
		p.Pos, p.Prev = nth, prev
		p.ShardRows, p.ShardBytes, p.ShardIDs = last.ShardRows+uint64(p.Rows), last.ShardBytes+uint64(len(m.Data)), last.ShardIDs+reader.IDSum()
		out := nats.NewMsg(to.Subject())
		p.SetHeaders(out.Header)
		out.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(lastSeq, 10))
		out.Data = m.Data
		ack, err := streams.Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) { return s.js.PublishMsg(ctx, out) })
		if err != nil {
			return false, fmt.Errorf("sinks: moving position %d of %s: %w", nth, to, err)
		}
		last, lastSeq, prev = p, ack.Sequence, schemas.Digest(m.Data)
		s.cfg.Crash.at("sink.fork-frame")
		return nth < n, nil
	})
	if err == nil && last.Pos < n {
		err = fmt.Errorf("sinks: %s: %w: %d frames were to be moved, %s has %d of them", e.Name(), ErrGap, n, schemas.StreamShards, last.Pos)
	}
	return err
}

func within(spans []ledger.Span, pos uint64) bool {
	for _, s := range spans {
		if s.From <= pos && pos <= s.To {
			return true
		}
	}
	return false
}

// deleteForked takes the frames that took positions again out of SHARDS, once the erasure record says which messages they came from.
func (s *Sinks) deleteForked(ctx context.Context, e registry.Shard) error {
	var seqs []uint64
	var from []checkpoint.Silent
	_, err := streams.Headers(ctx, s.js, schemas.StreamShards, e.Ref().Subject(), 1, func(m *streams.Message) error {
		if p, err := schemas.ParsePlaced(m.Header); err == nil && p.Pos > e.Fork.At {
			if seqs = append(seqs, m.Sequence); p.SourceFirst == 0 {
				from = append(from, checkpoint.Silent{Seq: p.SourceSeq, Stored: p.SourceTime})
			}
		}
		return nil
	})
	if err != nil || len(seqs) == 0 {
		return err
	}
	if _, err := s.cfg.Registry.AmendErasureRecord(ctx, e.Ref(), func(t *ledger.ErasureRecord) bool {
		return t.AddSilent(from...)
	}); err != nil {
		return err
	}
	for _, seq := range seqs {
		if err := streams.Delete(ctx, s.js, s.shards, seq, false, streams.Tell); err != nil { // the shard's other frames wait for that
			return err
		}
	}
	return nil
}
