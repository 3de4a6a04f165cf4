package sinks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

// housekeep closes sealed shards that are stored whole, and, in one sink of all,
// purges what the streams need no longer.
func (s *Sinks) housekeep(ctx context.Context) {
	j := &janitor{s: s}
	for {
		sleep(ctx, s.cfg.Housekeeping)
		if ctx.Err() != nil {
			return
		}
		if err := s.closeShards(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Hooks.fault(Ref{}, err)
		}
		if !s.members.Owns("janitor") {
			continue
		}
		if err := j.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.cfg.Hooks.fault(Ref{}, err)
		}
	}
}

// closeShards closes this sink's sealed shards whose last frame is stored.
func (s *Sinks) closeShards(ctx context.Context) error {
	topics, err := s.cfg.Registry.Topics(ctx)
	if err != nil {
		return err
	}
	for _, t := range topics {
		entries, err := s.cfg.Registry.Shards(ctx, t.Name, 0)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Status != registry.Sealed || !s.members.Owns(e.ID.String()) {
				continue
			}
			if err := s.close(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sinks) close(ctx context.Context, e registry.Shard) error {
	ref := Ref{e.Topic, e.Month, e.ID}
	head, err := s.cfg.DB.Head(ctx, e.Topic, e.Month, e.ID)
	if err != nil || max(head, e.Floor) < e.SealedAt {
		return err
	}
	stored, err := s.cfg.DB.Stored(ctx, e.Topic, e.Month, e.ID)
	if err != nil {
		return err
	}
	if err := s.cfg.Registry.Close(ctx, e.Topic, e.Month, e.ID, stored.Rows, stored.MinTs, stored.MaxTs); err != nil {
		return err
	}
	s.cfg.Hooks.closed(ref, stored.Rows)
	return nil
}

// janitor purges the streams. It remembers checkpoints, so that EVENTS keeps
// what was routed for SettleTime more.
type janitor struct {
	s    *Sinks
	past []snapshot // oldest first
	// sweptAt is when the shards were last swept: each sweep looks at every shard,
	// so a hundred in a replay window are enough.
	sweptAt time.Time
}

// snapshot is how far each lane was routed at a time.
type snapshot struct {
	at   time.Time
	upTo map[string]uint64 // routed subject: sequence in EVENTS
}

func (j *janitor) sweep(ctx context.Context, now time.Time) error {
	return errors.Join(j.sweepEvents(ctx, now), j.sweepCheckpoints(ctx), j.sweepShards(ctx, now))
}

// sweepEvents purges, lane by lane, what had been routed SettleTime ago. The
// message the checkpoint names stays, so that a rollback of EVENTS shows.
func (j *janitor) sweepEvents(ctx context.Context, now time.Time) error {
	upTo, err := routedUpTo(ctx, j.s.js)
	if err != nil {
		return err
	}
	j.past = append(j.past, snapshot{now, upTo})
	var ripe *snapshot
	for len(j.past) > 0 && now.Sub(j.past[0].at) >= j.s.cfg.SettleTime {
		ripe, j.past = &j.past[0], j.past[1:]
	}
	if ripe == nil {
		return nil
	}
	events, err := j.s.js.Stream(ctx, schemas.StreamEvents)
	if err != nil {
		return fmt.Errorf("janitor: %s: %w", schemas.StreamEvents, err)
	}
	for subject, seq := range ripe.upTo {
		topic, lane, ok := schemas.RoutedTokens(subject)
		if !ok || seq < 2 {
			continue
		}
		if err := events.Purge(ctx, jetstream.WithPurgeSubject(schemas.LaneFilter(topic, lane)), jetstream.WithPurgeSequence(seq)); err != nil {
			return fmt.Errorf("janitor: purging %s of %s: %w", schemas.LaneFilter(topic, lane), schemas.StreamEvents, err)
		}
	}
	return nil
}

// sweepCheckpoints keeps the last checkpoint of each lane.
func (j *janitor) sweepCheckpoints(ctx context.Context) error {
	info, err := j.s.shards.Info(ctx, jetstream.WithSubjectFilter(schemas.SubjectsRouted))
	if err != nil {
		return fmt.Errorf("janitor: %s: %w", schemas.StreamShards, err)
	}
	for subject, n := range info.State.Subjects {
		if n < 2 {
			continue
		}
		if err := j.s.shards.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeKeep(1)); err != nil {
			return fmt.Errorf("janitor: purging %s: %w", subject, err)
		}
	}
	return nil
}

// sweepShards purges frames that are stored, verified and older than the replay
// window, but never a shard's last.
func (j *janitor) sweepShards(ctx context.Context, now time.Time) error {
	if now.Sub(j.sweptAt) < j.s.cfg.ReplayWindow/100 {
		return nil
	}
	j.sweptAt = now
	info, err := j.s.shards.Info(ctx, jetstream.WithSubjectFilter(schemas.SubjectsShards))
	if err != nil {
		return fmt.Errorf("janitor: %s: %w", schemas.StreamShards, err)
	}
	limit := now.Add(-j.s.cfg.ReplayWindow)
	if info.State.FirstTime.After(limit) {
		return nil // the oldest message is young enough
	}
	keepFrom, err := firstAfter(ctx, j.s.js, limit, info.State.LastSeq)
	if err != nil {
		return err
	}
	for subject, n := range info.State.Subjects {
		if n < 2 {
			continue
		}
		if err := j.sweepShard(ctx, subject, keepFrom); err != nil {
			return err
		}
	}
	return nil
}

func (j *janitor) sweepShard(ctx context.Context, subject string, keepFrom uint64) error {
	topic, month, id, err := schemas.ParseShardSubject(subject)
	if err != nil {
		return nil // not a shard's: nothing to purge by
	}
	ref := Ref{topic, month, id}
	head, err := j.s.head(ctx, ref)
	if err != nil || head == 0 {
		return err
	}
	last, err := j.s.shards.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return fmt.Errorf("janitor: tail of %s: %w", ref, err)
	}
	at, err := registry.FindFrame(ctx, j.s.shards, subject, head, last.Sequence)
	if err != nil {
		return err
	}
	p, err := registry.FrameFrom(ctx, j.s.shards, subject, at)
	if err != nil {
		return err
	}
	stored, err := j.s.cfg.DB.Stored(ctx, topic, month, id)
	if err != nil {
		return err
	}
	if p.Pos != head || stored.Rows != p.ShardRows {
		return fmt.Errorf("janitor: %s: %w: %d rows up to position %d, the frames brought %d; run `almanac verify %s`", ref, ErrUnverified, stored.Rows, head, p.ShardRows, topic)
	}
	if err := j.s.shards.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(min(keepFrom, at, last.Sequence))); err != nil {
		return fmt.Errorf("janitor: purging %s: %w", ref, err)
	}
	return nil
}

// routedUpTo reads how far each lane is routed.
func routedUpTo(ctx context.Context, js jetstream.JetStream) (map[string]uint64, error) {
	upTo := map[string]uint64{}
	err := registry.LastMessages(ctx, js, schemas.StreamShards, schemas.SubjectsRouted, func(msg *jetstream.RawStreamMsg) error {
		cp, err := schemas.ParseCheckpoint(msg.Data)
		if err != nil {
			return fmt.Errorf("%s: %w", msg.Subject, err)
		}
		upTo[msg.Subject] = cp.Source
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("janitor: checkpoints: %w", err)
	}
	return upTo, nil
}

// firstAfter is the sequence of the first message stored after t.
func firstAfter(ctx context.Context, js jetstream.JetStream, t time.Time, last uint64) (uint64, error) {
	msgs, err := jetstreamext.GetBatch(ctx, js, schemas.StreamShards, 1, jetstreamext.GetBatchStartTime(t))
	if err != nil {
		return 0, fmt.Errorf("janitor: first message after %s: %w", t, err)
	}
	for msg, err := range msgs {
		if err == nil {
			return msg.Sequence, nil
		}
		if !errors.Is(err, jetstreamext.ErrNoMessages) {
			return 0, fmt.Errorf("janitor: first message after %s: %w", t, err)
		}
		return last, nil
	}
	return 0, fmt.Errorf("janitor: first message after %s: %w", t, registry.ErrCut)
}
