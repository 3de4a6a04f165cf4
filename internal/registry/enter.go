package registry

import (
	"context"
	"errors"
	"slices"

	"github.com/almanac-events/almanac/schemas"
)

// enter is commit for changes of which one may be the first under its key: with the descriptors of their topics as they are. A change
// over what was read fails once a removal took that out; a first one would not, where its writer was frozen meanwhile. ErrUnknownTopic:
// a topic was removed. ErrConflict is of the changes alone. Routers, which may not write descriptors, need it not: a removal waits for them.
func (r *Registry) enter(ctx context.Context, topics []string, changes ...*change) error {
	return r.enterAs(ctx, topics, nil, changes...)
}

// enterAs is enter of what was prepared for topics as they were, by the schema version of each: where a name is another topic's since,
// that is ErrUnknownTopic too. Of a topic without a version, or with 0, it is not known.
func (r *Registry) enterAs(ctx context.Context, topics []string, as map[string]int, changes ...*change) error {
	if !slices.ContainsFunc(changes, func(c *change) bool { return c.rev == 0 }) {
		return r.commit(ctx, changes...)
	}
	return r.enterWith(ctx, topics, as, changes...)
}

// enterWith is enterAs of changes that may each be the first under its key.
func (r *Registry) enterWith(ctx context.Context, topics []string, as map[string]int, changes ...*change) error {
	for {
		with, err := r.withTopics(ctx, topics, as)
		if err != nil {
			return err
		}
		if err = r.commit(ctx, append(slices.Clone(changes), with...)...); !errors.Is(err, ErrConflict) {
			return err
		}
		now, unknown := r.withTopics(ctx, topics, as)
		if unknown != nil {
			return unknown
		}
		if slices.EqualFunc(with, now, func(a, b *change) bool { return a.rev == b.rev }) {
			return err
		}
	}
}

// withTopics writes the descriptors of topics over themselves, each once. A topic that the registry lost, or never had, does not have one.
func (r *Registry) withTopics(ctx context.Context, topics []string, as map[string]int) (with []*change, err error) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(topics))) {
		if name == schemas.NoTopic { // foreign messages: it is never declared, nor removed
			continue
		}
		var t schemas.Topic
		rev, err := r.get(ctx, schemas.TopicKey(name), &t)
		switch {
		case err == nil && as[name] > 0 && t.Earlier(as[name]):
			return nil, removedMeanwhile(name, nil)
		case err == nil:
			with = append(with, &change{key: schemas.TopicKey(name), rev: rev, v: &t})
			continue
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}
		if _, removed := r.Removal(ctx, name); removed == nil {
			return nil, r.unknownTopic(ctx, name)
		} else if !errors.Is(removed, ErrNotFound) {
			return nil, removed
		}
	}
	return with, nil
}
