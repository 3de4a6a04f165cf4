package sinks

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-events/almanac/registry"
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

// closeShards closes this sink's sealed shards whose last frame is stored. One
// that cannot be closed now does not keep the others open.
func (s *Sinks) closeShards(ctx context.Context) error {
	topics, err := s.cfg.Registry.Topics(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range topics {
		entries, err := s.cfg.Registry.Shards(ctx, t.Name, 0)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Status == registry.Sealed && s.members.Owns(e.ID.String()) {
				failed = append(failed, s.close(ctx, e))
			}
		}
	}
	return errors.Join(failed...)
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
	s.cfg.Crash.at("sink.before-close")
	if err := s.cfg.Registry.Close(ctx, e.Topic, e.Month, e.ID, stored.Rows, stored.MinTs, stored.MaxTs); err != nil {
		return err
	}
	s.cfg.Hooks.closed(ref, stored.Rows)
	return nil
}
