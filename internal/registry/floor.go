package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// RaiseFloor states that everything of the shard up to pos was stored, whatever
// ClickHouse holds of it from now on: the head is the greater of this floor and
// what stands there. It must have succeeded before rows that carry the head may
// go, or a sink that starts then would store their frames again.
//
// It never lowers the floor, may be called any number of times by any number of
// processes, and returns the entry as it stands then. pos must not be above what
// is stored: a sink passes over everything below the floor.
func (r *Registry) RaiseFloor(ctx context.Context, ref schemas.ShardRef, pos uint64) (Shard, error) {
	return r.amend(ctx, ref, func(s *Shard) bool {
		higher := pos > s.Floor
		s.Floor = max(s.Floor, pos)
		return higher
	})
}

// LacksBelowFloor reports whether ClickHouse lacks rows above head, the highest position that it has, and up to the shard's
// floor, which no erasure took; rows are those that it has. A floor says where no sink goes below, and not that rows are there:
// ClickHouse may have been restored from an older copy, or emptied. Then what the floor once stated is to be stored
// again, and the ledger keeps out what was erased.
func (r *Registry) LacksBelowFloor(ctx context.Context, s *Shard, head, rows uint64) (bool, error) {
	subject, floor := s.Ref().Subject(), s.Floor
	last, err := streams.DecideLast(ctx, r.js, schemas.StreamShards, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("registry: end of %s: %w", s.Ref(), err)
	}
	if end, err := schemas.ParsePlaced(last.Header); err == nil && end.Pos < floor { // SHARDS is an older copy, too
		if floor = end.Pos; head >= floor {
			return false, nil
		}
	}
	seq, err := streams.FindFrame(ctx, r.js, subject, floor, last.Sequence)
	if err != nil {
		return false, err
	}
	p, err := streams.FrameFrom(ctx, r.js, subject, seq)
	if err != nil || p.Pos != floor {
		return false, err // purged: the floor is all there is to go by
	}
	t, err := r.ErasureRecord(ctx, s.Ref())
	if err != nil {
		return false, err
	}
	if seq, err = streams.FindFrame(ctx, r.js, subject, head+1, last.Sequence); err != nil {
		return false, err
	}
	first, err := streams.FrameFrom(ctx, r.js, subject, seq)
	if err != nil {
		return false, err
	}
	if first.Pos != head+1 { // purged: the count of all rows tells
		_, gone := t.GoneUpTo(floor)
		return rows+gone < p.ShardRows, nil
	}
	return t.GoneBetween(head, floor) < p.ShardRows-(first.ShardRows-uint64(first.Rows)), nil
}

// amend changes a shard's entry until f, on a fresh reading, sees nothing to change.
func (r *Registry) amend(ctx context.Context, ref schemas.ShardRef, f func(*Shard) (changed bool)) (Shard, error) {
	return amend(ctx, r, func() (Shard, error) { return r.Shard(ctx, ref) }, f)
}
