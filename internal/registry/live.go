package registry

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// LiveMembers counts the members of a role by the age of their leases, on the clock of this machine.
func (r *Registry) LiveMembers(ctx context.Context, role string) (n int, err error) {
	kv, err := r.js.KeyValue(ctx, schemas.Bucket)
	if err != nil {
		return 0, err
	}
	keys, err := kv.ListKeysFiltered(ctx, schemas.LeaseKeys(role))
	if err != nil {
		return 0, err
	}
	for key := range keys.Keys() {
		lease, err := kv.Get(ctx, key)
		// A lease that is gone meanwhile is that of a member that left.
		if err == nil && time.Since(lease.Created()) < LeaseExpiry {
			n++
		}
	}
	return n, nil
}
