package registry

import (
	"context"

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

// amend changes a shard's entry until f, on a fresh reading, sees nothing to change.
func (r *Registry) amend(ctx context.Context, ref schemas.ShardRef, f func(*Shard) (changed bool)) (Shard, error) {
	return amend(ctx, r, func() (Shard, error) { return r.Shard(ctx, ref) }, f)
}
