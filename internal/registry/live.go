package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// LiveMembers counts the members of a role by the age of their leases, on the clock of this machine.
func (r *Registry) LiveMembers(ctx context.Context, role string) (int, error) {
	live, err := r.ListMembers(ctx, role)
	return len(live), err
}

// ListMembers lists them, with what their leases say.
func (r *Registry) ListMembers(ctx context.Context, role string) ([]Member, error) {
	var live []Member
	prefix := len(schemas.KVSubject(schemas.LeaseKeys(role))) - 1
	err := streams.Latest(ctx, r.js, schemas.KVStream, schemas.KVSubject(schemas.LeaseKeys(role)), func(m *streams.Message) error {
		// A lease without data is that of a member that left.
		if len(m.Data) == 0 || time.Since(m.Time) >= LeaseExpiry {
			return nil
		}
		var s leaseValue
		_ = json.Unmarshal(m.Data, &s) // another's: it says nothing
		live = append(live, Member{role, m.Subject[prefix:], s.Host, s.PID})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("registry: members of %s: %w", role, err)
	}
	return live, nil
}
