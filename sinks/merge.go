package sinks

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// mergeAhead bounds the closed shards that wait to be merged: an hour and more of
// full load. Those beyond, and those of a sink that dies, ClickHouse merges by
// itself once they have been quiet for six hours (the table's DDL).
const mergeAhead = 256

// mergeTimeout bounds one merge; that of 10 million rows takes half a minute.
const mergeTimeout = 10 * time.Minute

// merge makes one part of each shard that closes: one rewrite of its rows, where
// merging them as they come would be two or three, and none while inserts want the
// processors. One at a time.
func (s *Sinks) merge(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case ref := <-s.unmerged:
			err := s.mergeShard(ctx, ref)
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, tables.ErrBusy): // ClickHouse is at it, or has no memory to spare
				s.toMerge(ref)
				_ = backoff.Sleep(ctx, s.cfg.Housekeeping) // the loop asks ctx
			case err != nil && !errors.Is(err, tables.ErrNoTable):
				s.cfg.Hooks.fault(ref, err)
			}
		}
	}
}

func (s *Sinks) mergeShard(ctx context.Context, ref schemas.ShardRef) error {
	ctx, cancel := context.WithTimeout(ctx, mergeTimeout)
	defer cancel()
	return s.cfg.DB.Merge(ctx, ref)
}

// toMerge remembers a closed shard, unless too many wait.
func (s *Sinks) toMerge(ref schemas.ShardRef) {
	select {
	case s.unmerged <- ref:
	default:
	}
}
