package registry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// sealHead is the end of a topic's chain of seals.
type sealHead struct {
	Topic  string `json:"topic"`
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
}

func (h *sealHead) key() string { return schemas.SealHeadKey(h.Topic) }

// LastSeal is the number of a topic's newest seal, 0 when there is none.
func (r *Registry) LastSeal(ctx context.Context, topic string) (uint64, error) {
	h, _, err := r.sealHead(ctx, topic)
	return h.Number, err
}

func (r *Registry) sealHead(ctx context.Context, topic string) (sealHead, uint64, error) {
	h := sealHead{Topic: topic}
	rev, err := r.get(ctx, h.key(), &h)
	if errors.Is(err, ErrNotFound) {
		h, err = sealHead{Topic: topic, Hash: schemas.SealGenesis}, nil
	}
	return h, rev, err
}

// Seals reads all seals of a topic, in their order.
func (r *Registry) Seals(ctx context.Context, topic string) ([]schemas.Seal, error) {
	out, err := list[schemas.Seal](ctx, r, schemas.SealKeys(topic))
	slices.SortFunc(out, func(a, b schemas.Seal) int { return cmp.Compare(a.Number, b.Number) })
	return out, err
}

// NewestSeals reads the newest seal of each shard of a topic.
func (r *Registry) NewestSeals(ctx context.Context, topic string) (map[schemas.ShardRef]schemas.Seal, error) {
	all, err := r.Seals(ctx, topic)
	newest := map[schemas.ShardRef]schemas.Seal{}
	for _, s := range all {
		newest[s.Ref()] = s
	}
	return newest, err
}

// AddSeal chains a seal to a topic's last one, whose number the caller knows, and returns it
// with its number and hash. It is ErrConflict when another process added one.
func (r *Registry) AddSeal(ctx context.Context, s schemas.Seal, last uint64) (schemas.Seal, error) {
	h, rev, err := r.sealHead(ctx, s.Topic)
	if err != nil {
		return s, err
	}
	if h.Number != last {
		return s, ErrConflict
	}
	s.At = s.At.UTC().Truncate(time.Millisecond)
	s.Number, s.Prev = h.Number+1, h.Hash
	s.Hash = s.Sum()
	h.Number, h.Hash = s.Number, s.Hash
	return s, r.enter(ctx, []string{s.Topic}, &change{key: h.key(), rev: rev, v: &h}, &change{key: schemas.SealKey(s.Topic, s.Number), v: &s})
}
