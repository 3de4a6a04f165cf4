package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// engineEntry says which engine has the cluster's rows.
type engineEntry struct {
	ID string    `json:"id"`
	At time.Time `json:"at"` // when that was decided
}

// Engine is the identity of the engine that has the cluster's rows, with the entry's revision:
// empty while none was chosen. An entry that is not readable is as one that was lost: the
// engine has its identity on its own disk.
func (r *Registry) Engine(ctx context.Context) (id string, rev uint64, err error) {
	var e engineEntry
	rev, err = r.get(ctx, schemas.EngineKey, &e)
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrUnreadable):
		return "", rev, nil
	case err != nil:
		return "", 0, fmt.Errorf("which ClickHouse has the rows: %w", err)
	case !schemas.ValidEngine(e.ID):
		return "", rev, nil
	}
	return e.ID, rev, nil
}

// SetEngine writes which engine has the cluster's rows over the revision that was read:
// ErrConflict when another process was faster.
func (r *Registry) SetEngine(ctx context.Context, id string, rev uint64) error {
	return r.commit(ctx, &change{key: schemas.EngineKey, rev: rev, v: engineEntry{ID: id, At: time.Now().UTC()}})
}
