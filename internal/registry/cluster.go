package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// clusterEntry tells this Almanac from every other one.
type clusterEntry struct {
	ID string `json:"id"`
}

// Cluster is the random text that NameCluster gave, and which stays through backups and restores:
// two that have the same are one Almanac, or one was restored from the other. Empty: there is none,
// or it was lost.
func (r *Registry) Cluster(ctx context.Context) (id string, err error) {
	id, _, err = r.cluster(ctx)
	return id, err
}

func (r *Registry) cluster(ctx context.Context) (id string, rev uint64, err error) {
	var e clusterEntry
	rev, err = r.get(ctx, schemas.ClusterKey, &e)
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrUnreadable) {
		return "", rev, fmt.Errorf("which Almanac this is: %w", err)
	}
	return e.ID, rev, nil
}

// NameCluster gives the text where there is none, and returns it. The first backup asks for it.
func (r *Registry) NameCluster(ctx context.Context) (string, error) {
	id, rev, err := r.cluster(ctx)
	if err != nil || id != "" {
		return id, err
	}
	id = rand.Text()
	if err = r.commit(ctx, &change{key: schemas.ClusterKey, rev: rev, v: clusterEntry{id}}); errors.Is(err, ErrConflict) {
		return r.Cluster(ctx) // another process was faster
	}
	if err != nil {
		return "", fmt.Errorf("which Almanac this is: %w", err)
	}
	return id, nil
}
