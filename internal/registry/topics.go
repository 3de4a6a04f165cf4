package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Topic reads a topic's descriptor.
func (r *Registry) Topic(ctx context.Context, name string) (schemas.Topic, error) {
	var t schemas.Topic
	if err := schemas.ValidateTopicName(name); err != nil {
		return t, err
	}
	_, err := r.get(ctx, schemas.TopicKey(name), &t)
	if errors.Is(err, ErrNotFound) {
		return t, r.unknownTopic(ctx, name)
	}
	return t, err
}

// AskedTopic reads the descriptor of a topic that a request names. A name that no topic has, or
// can have, is a schemas.ErrRequest too.
func (r *Registry) AskedTopic(ctx context.Context, name string) (schemas.Topic, error) {
	return r.TopicOf(ctx, name, "")
}

// TopicOf is AskedTopic for what reads topics of a kind: the refusal of one that is not declared says how to declare it so, and
// one of another kind is a *WrongKindError.
func (r *Registry) TopicOf(ctx context.Context, name string, kind schemas.Kind) (schemas.Topic, error) {
	t, err := r.Topic(ctx, name)
	if unknown := (*UnknownTopicError)(nil); errors.As(err, &unknown) {
		unknown.Kind = kind // before the text is made
	}
	if schemas.Reason(err) != "" {
		err = fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	if err == nil && kind != "" && t.Kind != kind {
		err = fmt.Errorf("%w: %w", schemas.ErrRequest, &WrongKindError{Name: name, Kind: t.Kind, Want: kind})
	}
	return t, err
}

// unknownTopic says which topics there are.
func (r *Registry) unknownTopic(ctx context.Context, name string) error {
	topics, err := r.Topics(ctx)
	if err != nil {
		return err
	}
	if d, err := r.Removal(ctx, name); err == nil && d.Ended == nil {
		return fmt.Errorf("%w: %w: %q, since %s; run `almanac topics rm %s` to end that", schemas.ErrUnknownTopic, ErrRemoving, name, d.Began.Format(time.RFC3339), name)
	}
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	return &UnknownTopicError{Name: name, Known: names}
}

// Topics reads every descriptor, by name. One that is not readable is left out, so that it stops no
// other topic: verify names it, and so does what reads it alone.
func (r *Registry) Topics(ctx context.Context) ([]schemas.Topic, error) {
	if r.odd == nil {
		r = r.Skipping(func(error) {})
	}
	topics, err := list[schemas.Topic](ctx, r, schemas.TopicKeys)
	slices.SortFunc(topics, func(a, b schemas.Topic) int { return cmp.Compare(a.Name, b.Name) })
	return topics, err
}

// Mentioned are the topics that entries speak of, whether or not they are declared: those
// of head entries.
func (r *Registry) Mentioned(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	err := r.scan(ctx, schemas.AllHeadKeys, func(key string, _ uint64, value []byte) error {
		topic, month, _ := strings.Cut(key, ".")
		if _, err := schemas.ParseMonth(month); err == nil && schemas.ValidateTopicName(topic) == nil && decode(key, value, &Head{}) == nil {
			out[topic] = true
		}
		return nil
	})
	return out, err
}

// Applied is what Apply did.
type Applied string

// What Apply did to a topic.
const (
	Created   Applied = "created"
	Changed   Applied = "changed"
	Unchanged Applied = "unchanged"
)

// Apply declares a topic, or changes a live one where that is possible (see
// schemas.Topic.Evolve). It does nothing when nothing differs. A live topic keeps its
// lanes where want does not say how many. One that was removed and is back by an older copy is there to stay then.
func (r *Registry) Apply(ctx context.Context, want schemas.Topic, dryRun bool) (schemas.Topic, Applied, error) {
	said := want.Lanes != 0
	want, err := want.Declared()
	if err != nil {
		return want, "", err
	}
	// Each round loses only to another writer of the same topic.
	for {
		var live schemas.Topic
		rev, err := r.get(ctx, schemas.TopicKey(want.Name), &live)
		// After the descriptor: a removal that is entered later takes it out, which the commit notices.
		d, removed := r.Removal(ctx, want.Name)
		if removed == nil && d.Ended == nil {
			return want, "", fmt.Errorf("%w: %q, since %s; run `almanac topics rm %s` to end that, then declare it", ErrRemoving, want.Name, d.Began.Format(time.RFC3339), want.Name)
		} else if removed != nil && !errors.Is(removed, ErrNotFound) {
			return want, "", removed
		}
		next, did := want, Created
		if removed == nil { // frames that its producers still have are not of this one
			next = want.After(d.Topic.Version)
		}
		switch {
		case err == nil:
			if !dryRun && removed == nil && d.IsBack(&live) { // from an older copy, and it is to stay
				if err := r.forgetCopied(ctx, d.key()); err != nil {
					return want, "", err
				}
			}
			if !said {
				want.Lanes = live.Lanes
			}
			if next, err = live.Evolve(want); err != nil {
				return live, "", err
			}
			if did = Changed; reflect.DeepEqual(next, live) {
				return live, Unchanged, nil
			}
		case !errors.Is(err, ErrNotFound):
			return want, "", err
		}
		if dryRun {
			return next, did, nil
		}
		err = r.commit(ctx, &change{key: schemas.TopicKey(want.Name), rev: rev, v: next})
		if err == nil || !errors.Is(err, ErrConflict) {
			return next, did, err
		}
	}
}
