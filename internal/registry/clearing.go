package registry

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// BeginClearing marks that a shard's fields are being cleared, unless an erasure is
// pending in it: its rows may be told by what would be cleared. began is false then.
func (r *Registry) BeginClearing(ctx context.Context, ref schemas.ShardRef, now time.Time) (began bool, err error) {
	t, err := r.AmendErasureRecord(ctx, ref, func(t *ledger.ErasureRecord) bool {
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
	_, err := r.AmendErasureRecord(ctx, ref, func(t *ledger.ErasureRecord) (changed bool) {
		changed = !t.ClearingAt.IsZero()
		t.ClearingAt = time.Time{}
		return changed
	})
	return err
}
