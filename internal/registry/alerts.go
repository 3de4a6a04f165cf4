package registry

import (
	"context"
	"encoding/json"
	"errors"
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

// alertTurn is the entry that all who save rules write.
type alertTurn struct {
	UpdatedAt time.Time `json:"updated_at"`
}

// SaveAlertRules writes groups over those that are there, all or none. may is asked with the groups that are declared
// by then, as often as another process is faster; it refuses by an error.
func (r *Registry) SaveAlertRules(ctx context.Context, groups []AlertRules, may func(live []AlertRules) error) error {
	for {
		var turn alertTurn
		rev, err := r.get(ctx, schemas.AlertTurnKey, &turn)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		live, err := r.AlertRules(ctx) // after the turn: groups of an earlier one are among them
		if err != nil {
			return err
		}
		if err := may(live); err != nil {
			return err
		}
		turn.UpdatedAt = time.Now().UTC().Truncate(time.Millisecond)
		changes := []*change{{key: schemas.AlertTurnKey, rev: rev, v: &turn}}
		for i := range groups {
			groups[i].UpdatedAt = turn.UpdatedAt
			changes = append(changes, &change{key: groups[i].key(), any: true, v: &groups[i]})
		}
		if err := r.commit(ctx, changes...); !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// ForgetAlertRules removes a group: ErrNotFound where there is none.
func (r *Registry) ForgetAlertRules(ctx context.Context, group string) error {
	var a AlertRules
	if _, err := r.get(ctx, schemas.AlertKey(group), &a); err != nil {
		return err
	}
	return r.forgetCopied(ctx, schemas.AlertKey(group))
}
