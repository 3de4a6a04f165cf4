package sinks

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// SHARDS may be restored from an older copy while ClickHouse has what came after it. Then a
// router gives positions again, and only a sink sees that: the shard's last frame in SHARDS is
// not what ClickHouse has at that position, or the one at the head is not. So a sink compares
// the end of each active shard once it watches SHARDS, and again after each outage of NATS.
// Where ClickHouse only has more, nothing is lost and nothing is done: the lane may be about to
// give the same positions to the same frames.

// compareEnd compares the last frame of a shard with what is stored at its position, where all of
// SHARDS' positions seem to be stored. Where they are not, checkHead compares.
func (s *Sinks) compareEnd(ctx context.Context, topic *schemas.Topic, t task) error {
	entry, err := s.cfg.Registry.Shard(ctx, t.ref)
	if errors.Is(err, registry.ErrNotFound) || err == nil && entry.Status != registry.Active {
		return nil
	}
	if err != nil {
		return err
	}
	msg, err := streams.DecideLast(ctx, s.js, schemas.StreamShards, t.ref.Subject())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sinks: end of %s: %w", t.ref, err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil || p.Cleared != "" || t.head.pos < p.Pos {
		return err
	}
	same, err := s.same(ctx, topic, t.ref, &p, msg.Data, false)
	if err != nil || same {
		return err
	}
	return s.forked(ctx, topic, t, fmt.Sprintf("position %d, the last in %s, is %s, and ClickHouse, which has position %d, has other events there",
		p.Pos, schemas.StreamShards, schemas.Digest(msg.Data), t.head.pos))
}

// same reports whether ClickHouse, which seems to have a frame's position, has the frame there; head says that it is the one at the
// head. Rows that were truncated, dropped or deleted by hand since the head was read are ErrWentBack: they are to be
// stored again, and nothing forked. Another sink may have stored them by the time the head is read again, so the frame is looked at twice.
func (s *Sinks) same(ctx context.Context, topic *schemas.Topic, ref schemas.ShardRef, p *schemas.Placed, payload []byte, head bool) (bool, error) {
	s.cfg.Crash.at("sink.before-compare")
	same, err := s.stands(ctx, topic, ref, p, payload, head)
	if err != nil || same {
		return same, err
	}
	s.cfg.Crash.at("sink.before-second-compare")
	now, _, err := s.cfg.DB.HeadRows(ctx, ref)
	if err != nil {
		return false, err
	}
	entry, err := s.cfg.Registry.Shard(ctx, ref) // after the rows: its floor is raised before they go
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return false, err
	}
	if now = entry.Head(now); now < p.Pos {
		return false, fmt.Errorf("sinks: %s: %w: position %d of %d is its last now; what is missing is stored again", ref, ErrWentBack, now, p.Pos)
	}
	return s.stands(ctx, topic, ref, p, payload, head)
}

// stands is one look of same.
func (s *Sinks) stands(ctx context.Context, topic *schemas.Topic, ref schemas.ShardRef, p *schemas.Placed, payload []byte, head bool) (bool, error) {
	same, err := s.isStored(ctx, topic, ref, p, payload)
	if err == nil && same && topic.Front() != "" {
		return s.lastIsStored(ctx, topic, ref, p, head)
	}
	return same, err
}

// lastIsStored reports whether the last record of a frame is stored, and, where it is the frame
// at the head, whether no later one is: records are joined to frames as they come, so that a
// frame that was made again may have some of those of one that was made before.
func (s *Sinks) lastIsStored(ctx context.Context, topic *schemas.Topic, ref schemas.ShardRef, p *schemas.Placed, head bool) (bool, error) {
	end, err := s.cfg.DB.StoredEnd(ctx, ref, true)
	if err != nil {
		return false, err
	}
	if last := end.Record; last >= p.SourceSeq {
		return last == p.SourceSeq || !head, nil
	}
	erasures, err := s.ledger.ForWriter(ctx, topic.Name)
	return err == nil && len(erasures.Covering(p.Source(), p.MinTs, p.MaxTs)) > 0, err
}

// forked takes a shard out of its lane, and says why. What ClickHouse has of it is noted from one statement, and only where that
// is no less than what the decision was taken from.
func (s *Sinks) forked(ctx context.Context, topic *schemas.Topic, t task, why string) error {
	forked := fmt.Errorf("sinks: %s: %w: %s", t.ref, ErrForked, why)
	fork, err := s.forkOf(ctx, topic, t)
	if err != nil {
		return err
	}
	if err := s.cfg.Registry.Leave(ctx, t.ref, fork); err != nil && !errors.Is(err, registry.ErrNotFound) {
		return errors.Join(forked, err)
	}
	return forked
}

// forkOf is what ClickHouse has of a shard that is to leave its lane.
func (s *Sinks) forkOf(ctx context.Context, topic *schemas.Topic, t task) (fork registry.Fork, err error) {
	if err := s.unlessBehind(ctx, topic); err != nil {
		return fork, err
	}
	record, err := s.cfg.Registry.ErasureRecord(ctx, t.ref)
	if err != nil {
		return fork, err
	}
	end, err := s.cfg.DB.StoredEnd(ctx, t.ref, topic.Front() != "")
	if err != nil {
		return fork, err
	}
	if err := s.unlessBehind(ctx, topic); err != nil {
		return fork, err
	}
	entry, err := s.cfg.Registry.Shard(ctx, t.ref) // after the rows: its floor is raised before they go
	if err != nil {
		return fork, err
	}
	if now := entry.Head(end.Head); now < t.head.pos {
		return fork, fmt.Errorf("sinks: %s: %w: position %d of %d is its last now; what is missing is stored again", t.ref, ErrWentBack, now, t.head.pos)
	}
	gone, _ := record.GoneUpTo(end.Head)
	fork.LeftHead, fork.LeftRows = end.Head, end.Rows+gone
	fork.Stored, err = s.cfg.Registry.RecordAt(ctx, topic, end.Record, end.At)
	return fork, err
}

// unlessBehind refuses to note what ClickHouse has of a shard that forked while erasures are to be carried out again: the rows that came
// back with an older copy go once more without being counted, and would be taken for lost. It is asked before the rows are read, and after
// that, for the copy may have been restored in between.
func (s *Sinks) unlessBehind(ctx context.Context, topic *schemas.Topic) error {
	err := s.cfg.Registry.WithThird(tables.FreshLedger{DB: s.cfg.DB}).UnlessBehind(ctx, topic.Name)
	if err != nil {
		err = fmt.Errorf("sinks: a shard forked, and is looked at after that: %w", err)
	}
	return err
}
