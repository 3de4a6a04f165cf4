package registry

import (
	"context"
	"errors"
)

// entry is an entry of the bucket, which knows its key and the revision it was read at.
type entry[E any] interface {
	*E
	at() (key string, rev *uint64)
}

func (h *Head) at() (string, *uint64)    { return h.key(), &h.rev }
func (s *Shard) at() (string, *uint64)   { return s.key(), &s.rev }
func (t *Tally) at() (string, *uint64)   { return t.key(), &t.rev }
func (e *Erasure) at() (string, *uint64) { return e.key(), &e.rev }

// amend changes an entry by compare-and-set, as often as another process is faster, until f
// sees nothing to change. f may run several times, each on a fresh reading.
func amend[E any, P entry[E]](ctx context.Context, r *Registry, read func() (E, error), f func(P) (changed bool)) (E, error) {
	for {
		e, err := read()
		if err != nil || !f(&e) {
			return e, err
		}
		key, rev := P(&e).at()
		c := &change{key: key, rev: *rev, v: &e}
		err = r.commit(ctx, c)
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
		if kept, ok := any(&e).(interface{ at() (string, *uint64) }); ok {
			_, at := kept.at()
			*at = rev
		}
		out = append(out, e)
		return nil
	})
	return out, err
}
