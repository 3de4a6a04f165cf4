package registry

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// clearingLapse is after how long a mark counts for nothing: clearing a full shard
// takes minutes, and who was killed over it begins again within one round.
const clearingLapse = time.Hour

// Clearing says that the shard's fields are being cleared: what an erasure counted
// now it might not find any more.
func (t *Tally) Clearing(now time.Time) bool {
	return !t.ClearingAt.IsZero() && now.Sub(t.ClearingAt) < clearingLapse
}

// BeginClearing marks that a shard's fields are being cleared, unless an erasure is
// pending in it: its rows may be told by what would be cleared. EndClearing takes
// the mark away.
func (r *Registry) BeginClearing(ctx context.Context, topic string, m schemas.Month, s schemas.Shard, now time.Time) (began bool, err error) {
	t, err := r.AmendTally(ctx, topic, m, s, func(t *Tally) bool {
		if t.Pending != nil || t.ClearingAt.Equal(now) {
			return false
		}
		t.ClearingAt = now
		return true
	})
	return t.Pending == nil, err
}

// EndClearing takes the mark of BeginClearing away.
func (r *Registry) EndClearing(ctx context.Context, topic string, m schemas.Month, s schemas.Shard) error {
	_, err := r.AmendTally(ctx, topic, m, s, func(t *Tally) bool {
		had := !t.ClearingAt.IsZero()
		t.ClearingAt = time.Time{}
		return had
	})
	return err
}
