package sinks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// housekeep closes sealed shards that are stored whole, and, in one sink of all,
// purges what the streams need no longer and carries out retention. Two that do
// so at once harm nothing.
func (s *Sinks) housekeep(ctx context.Context) {
	j := &janitor{s: s}
	for {
		sleep(ctx, s.cfg.Housekeeping)
		if ctx.Err() != nil {
			return
		}
		err := s.keepHouse(ctx, j)
		if err == nil || tables.Classify(err) == tables.Unreachable && s.awaited(ctx) || ctx.Err() != nil {
			continue
		}
		s.cfg.Hooks.fault(schemas.ShardRef{}, err)
	}
}

func (s *Sinks) keepHouse(ctx context.Context, j *janitor) error {
	ctx, end := s.outages.Bound(ctx)
	defer end()
	house, err := s.listing(ctx)
	if err != nil {
		return err
	}
	s.retryViews(ctx, house)
	err = s.closeShards(ctx, house)
	if !s.members.Owns("janitor") {
		return err
	}
	if refused := s.mayPurge(ctx); refused != nil {
		return errors.Join(err, refused)
	}
	now, clockErr := s.now(ctx)
	if clockErr != nil {
		return errors.Join(err, clockErr)
	}
	return errors.Join(err, j.sweep(ctx, now), j.retain(ctx, house, now), j.blank(ctx, house, now))
}

// mayPurge returns why nothing may be purged now. A purge that is the first write a full
// disk refuses can hang the stream forever (docs/upstream.md).
func (s *Sinks) mayPurge(ctx context.Context) error {
	var err error
	if s.cfg.MayPurge != nil {
		err = s.cfg.MayPurge()
	}
	if err == nil {
		err = streams.Stores(ctx, s.js)
	}
	if err != nil {
		return fmt.Errorf("janitor: nothing is purged or dropped until NATS can write: %w", err)
	}
	return nil
}

// topicShards is a topic with the entries of all its shards.
type topicShards struct {
	topic  schemas.Topic
	shards []registry.Shard
}

func (s *Sinks) listing(ctx context.Context) ([]topicShards, error) {
	topics, err := s.cfg.Registry.Topics(ctx)
	if err != nil {
		return nil, err
	}
	s.fresh.heard(topics)
	house := make([]topicShards, len(topics))
	for i, t := range topics {
		entries, err := s.cfg.Registry.Shards(ctx, t.Name, 0)
		if err != nil {
			return nil, err
		}
		house[i] = topicShards{t, entries}
	}
	return house, nil
}

// now is the janitor's time; see Config.Now.
func (s *Sinks) now(ctx context.Context) (time.Time, error) {
	if s.cfg.Now != nil {
		return s.cfg.Now(), nil
	}
	info, err := s.shards.Info(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("janitor: %s: %w", schemas.StreamShards, err)
	}
	now := time.Now()
	if !info.TimeStamp.IsZero() && info.TimeStamp.Before(now) {
		now = info.TimeStamp
	}
	return now, nil
}

// closeShards closes this sink's sealed shards whose last frame is stored. One
// that cannot be closed now does not keep the others open. ClickHouse is asked once
// for all of a topic: it looks at every part of the table for each statement.
func (s *Sinks) closeShards(ctx context.Context, house []topicShards) error {
	var failed []error
	for _, t := range house {
		var sealed []registry.Shard
		var keys []tables.ShardKey
		for _, e := range t.shards {
			if e.Status == registry.Sealed && s.members.Owns(e.ID.String()) {
				sealed, keys = append(sealed, e), append(keys, tables.ShardKey{Month: e.Month, Shard: e.ID})
			}
		}
		stored, err := s.cfg.DB.StoredOf(ctx, t.topic.Name, keys)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, e := range sealed {
			failed = append(failed, s.close(ctx, e, stored[e.ID]))
		}
	}
	return errors.Join(failed...)
}

// close closes a shard of which so much is stored, if that is all of it.
func (s *Sinks) close(ctx context.Context, e registry.Shard, stored tables.Stored) error {
	ref := e.Ref()
	if stored.Head < e.SealedAt {
		if e.Floor < e.SealedAt {
			return nil
		}
		head, _, err := s.head(ctx, ref)
		if err != nil || head < e.SealedAt {
			return err
		}
		if stored, err = s.cfg.DB.Stored(ctx, e.Topic, e.Month, e.ID); err != nil {
			return err
		}
	}
	s.cfg.Crash.at("sink.before-close")
	closed, err := s.cfg.Registry.Close(ctx, e, stored.Rows, stored.MinTs, stored.MaxTs)
	if closed {
		s.cfg.Hooks.closed(ref, stored.Rows)
		if e.SealedAt > 1 { // one frame is one insert, and one part
			s.toMerge(ref)
		}
	}
	return err
}
