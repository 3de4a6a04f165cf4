package registry

import (
	"context"
	"encoding/json"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// LiveMembers counts the members of a role by the age of their leases, on the clock of this machine.
func (r *Registry) LiveMembers(ctx context.Context, role string) (int, error) {
	live, err := r.ListMembers(ctx, role)
	return len(live), err
}

// ListMembers lists them, with what their leases say.
func (r *Registry) ListMembers(ctx context.Context, role string) ([]Member, error) {
	kv, err := r.js.KeyValue(ctx, schemas.Bucket)
	if err != nil {
		return nil, err
	}
	keys, err := kv.ListKeysFiltered(ctx, schemas.LeaseKeys(role))
	if err != nil {
		return nil, err
	}
	var live []Member
	prefix := len(schemas.LeaseKeys(role)) - 1
	for key := range keys.Keys() {
		lease, err := kv.Get(ctx, key)
		// A lease that is gone meanwhile is that of a member that left.
		if err != nil || time.Since(lease.Created()) >= LeaseExpiry {
			continue
		}
		var s leaseValue
		_ = json.Unmarshal(lease.Value(), &s) // another's: it says nothing
		live = append(live, Member{role, key[prefix:], s.Host, s.PID})
	}
	return live, nil
}
