package registry

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// clearingLapse is after how long a mark no longer holds erasures up: clearing a full shard
// takes minutes, and a janitor that was killed meanwhile begins again within one round,
// with a new mark.
const clearingLapse = time.Hour

// Clearing says that the shard's fields are being cleared: what an erasure counted
// now it might not find any more.
func (t *Tally) Clearing(now time.Time) bool {
	return !t.ClearingAt.IsZero() && now.Sub(t.ClearingAt) < clearingLapse
}

// BeginClearing marks that a shard's fields are being cleared, unless an erasure is
// pending in it: its rows may be told by what would be cleared. began is false then.
func (r *Registry) BeginClearing(ctx context.Context, ref schemas.ShardRef, now time.Time) (began bool, err error) {
	t, err := r.AmendTally(ctx, ref, func(t *Tally) bool {
		if t.Pending != nil || t.ClearingAt.Equal(now) {
			return false
		}
		t.ClearingAt = now
		return true
	})
	return t.Pending == nil, err
}

// EndClearing takes the mark of BeginClearing away, also one of another process. Of two
// that clear the same fields of a shard the first that ends has cleared them all.
func (r *Registry) EndClearing(ctx context.Context, ref schemas.ShardRef) error {
	_, err := r.AmendTally(ctx, ref, func(t *Tally) (changed bool) {
		changed = !t.ClearingAt.IsZero()
		t.ClearingAt = time.Time{}
		return changed
	})
	return err
}
