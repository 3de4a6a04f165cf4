package registry

import (
	"context"
	"errors"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// entry is an entry of the bucket that is changed by compare-and-set.
type entry interface {
	Head | Shard | DerivedDrops | ledger.ErasureRecord | ledger.Erasure
}

// at returns an entry's key, its topic and where it keeps the revision it was read at. What is not an
// entry in this sense keeps none.
func at(e any) (key, topic string, rev *uint64) {
	switch e := e.(type) {
	case *Head:
		return e.key(), e.Topic, &e.rev
	case *Shard:
		return e.key(), e.Topic, &e.rev
	case *DerivedDrops:
		return schemas.DerivedDropsKey(e.topic), e.topic, &e.rev
	case *ledger.ErasureRecord:
		return e.Key(), e.Topic, &e.Rev
	case *ledger.Erasure:
		return e.Key(), e.Topic, &e.Rev
	}
	return "", "", nil
}

// amend changes an entry by compare-and-set, as often as another process is faster, until f
// sees nothing to change. f may run several times, each on a fresh reading.
func amend[E entry](ctx context.Context, r *Registry, read func() (E, error), f func(*E) (changed bool)) (E, error) {
	for {
		e, err := read()
		if err != nil || !f(&e) {
			return e, err
		}
		key, topic, rev := at(&e)
		c := &change{key: key, rev: *rev, v: &e}
		err = r.enter(ctx, []string{topic}, c)
		if err == nil {
			*rev = c.rev
			return e, nil
		}
		if !errors.Is(err, ErrConflict) {
			return e, err
		}
	}
}

// list reads all entries whose keys match a filter.
func list[E any](ctx context.Context, r *Registry, filter string) ([]E, error) {
	var out []E
	err := r.scan(ctx, filter, func(key string, rev uint64, value []byte) error {
		var e E
		if err := decode(key, value, &e); err != nil {
			return err
		}
		if _, _, at := at(&e); at != nil {
			*at = rev
		}
		out = append(out, e)
		return nil
	})
	return out, err
}
