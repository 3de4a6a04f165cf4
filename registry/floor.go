package registry

import (
	"context"
	"errors"

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

// amend changes a shard's entry by compare-and-set, as often as another process is
// faster, until f sees nothing to change. f may run several times, each on a
// fresh reading.
func (r *Registry) amend(ctx context.Context, ref schemas.ShardRef, f func(*Shard) (changed bool)) (Shard, error) {
	for {
		s, err := r.Shard(ctx, ref)
		if err != nil || !f(&s) {
			return s, err
		}
		c := &change{key: s.key(), rev: s.rev, v: &s}
		err = r.commit(ctx, c)
		if err == nil {
			s.rev = c.rev
			return s, nil
		}
		if !errors.Is(err, ErrConflict) {
			return s, err
		}
	}
}
