package sinks

import (
	"context"
	"errors"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// housekeep closes sealed shards that are stored whole, and makes views again that
// ClickHouse refused.
func (s *Sinks) housekeep(ctx context.Context) {
	for {
		if backoff.Sleep(ctx, s.cfg.Housekeeping) != nil {
			return
		}
		err := s.round(ctx)
		if err == nil || s.cfg.DB.Returned(ctx, err) || ctx.Err() != nil {
			continue
		}
		s.cfg.Hooks.fault(schemas.ShardRef{}, err)
	}
}

// round does housekeep's work once.
func (s *Sinks) round(ctx context.Context) error {
	ctx, end := s.outages.Bound(ctx)
	defer end()
	topics, err := s.cfg.Registry.AllShards(ctx)
	if err != nil {
		return err
	}
	declared := make([]schemas.Topic, len(topics))
	for i := range topics {
		declared[i] = topics[i].Topic
	}
	s.fresh.heard(declared)
	foreign, err := s.cfg.DB.Foreign(ctx, declared...)
	if err != nil {
		return err
	}
	for name := range foreign {
		s.forget(name) // its next insert is refused with the reason
	}
	s.retryViews(ctx, topics)
	return s.closeShards(ctx, topics)
}

// closeShards closes this sink's sealed shards whose last frame is stored. One
// that cannot be closed now does not keep the others open. ClickHouse is asked once
// for all of a topic: it looks at every part of the table for each statement.
func (s *Sinks) closeShards(ctx context.Context, topics []registry.TopicShards) error {
	var failed []error
	for _, t := range topics {
		var sealed []registry.Shard
		var keys []schemas.ShardRef
		for _, e := range t.Shards {
			if e.Status == registry.Sealed && s.members.Owns(e.ID.String()) {
				sealed, keys = append(sealed, e), append(keys, e.Ref())
			}
		}
		stored, err := s.cfg.DB.StoredOf(ctx, t.Topic.Name, keys)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, e := range sealed {
			if e.Forked() {
				failed = append(failed, s.resolveFork(ctx, e)) // closed in the next round
				continue
			}
			failed = append(failed, s.close(ctx, e, stored[e.ID]))
		}
	}
	return errors.Join(failed...)
}

// close closes a shard of which so much is stored, if that is all of it.
func (s *Sinks) close(ctx context.Context, e registry.Shard, stored schemas.Stored) error {
	ref := e.Ref()
	if stored.Head < e.SealedAt {
		if e.Floor < e.SealedAt {
			return nil
		}
		head, _, err := s.head(ctx, ref)
		if err != nil || head < e.SealedAt {
			return err
		}
		if stored, err = s.cfg.DB.Stored(ctx, e.Ref()); err != nil {
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
