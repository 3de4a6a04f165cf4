package registry

import (
	"context"
	"encoding/json"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// AlertRules is a group of rules of alerts, as package alerts writes them.
type AlertRules struct {
	Group string `json:"group"`
	// UpdatedAt is by the clock of the process that wrote it, for people.
	UpdatedAt time.Time       `json:"updated_at"`
	Rules     json.RawMessage `json:"rules"`
}

func (a *AlertRules) key() string { return schemas.AlertKey(a.Group) }

// AlertRules lists the groups.
func (r *Registry) AlertRules(ctx context.Context) ([]AlertRules, error) {
	return list[AlertRules](ctx, r, schemas.AlertKeys)
}

// SaveAlertRules writes a group over the one that is there.
func (r *Registry) SaveAlertRules(ctx context.Context, a AlertRules) error {
	a.UpdatedAt = a.UpdatedAt.UTC().Truncate(time.Millisecond)
	return r.commit(ctx, &change{key: a.key(), any: true, v: &a})
}

// ForgetAlertRules removes a group: ErrNotFound where there is none.
func (r *Registry) ForgetAlertRules(ctx context.Context, group string) error {
	var a AlertRules
	if _, err := r.get(ctx, schemas.AlertKey(group), &a); err != nil {
		return err
	}
	return r.forgetCopied(ctx, schemas.AlertKey(group))
}
