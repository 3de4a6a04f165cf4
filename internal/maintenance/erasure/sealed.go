package erasure

import (
	"context"
	"errors"
	"math"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// sealed is a topic of a kind that has seals, with the newest seal of each shard; a zero one for
// other topics.
type sealed struct {
	topic  schemas.Topic
	newest map[schemas.ShardRef]schemas.Seal
}

// seals reads the seals of the erasure's topic.
func (x *Eraser) seals(ctx context.Context, e *ledger.Erasure) (s sealed, err error) {
	t, err := x.cfg.Registry.Topic(ctx, e.Topic)
	if errors.Is(err, schemas.ErrUnknownTopic) {
		return s, nil
	}
	if err != nil || !t.Spec().Seals {
		return s, err
	}
	s.topic = t
	s.newest, err = x.cfg.Registry.NewestSeals(ctx, e.Topic)
	return s, err
}

// compare digests the rows of a shard before any of them goes, and compares them with its seal.
// What differs was changed since the seal was made: the erasure goes on, and says so in its
// receipt, in its proof, and in the seal that follows. A shard whose seal does not stand for its
// rows, because an erasure or a clearing came after it, is not compared.
func (x *Eraser) compare(ctx context.Context, s *sealed, entry *registry.Shard, t *ledger.ErasureRecord, p *ledger.Pending) error {
	seal, has := s.newest[entry.Ref()]
	if !has || entry.Status != registry.Closed || seal.Erased != ledger.SumCuts(t.Gone, math.MaxUint64) || !seal.AnonymisedAt.Equal(entry.AnonymisedAt) {
		return nil
	}
	digest, rows, err := x.cfg.DB.RowsDigest(ctx, &s.topic, entry.Ref(), seal.Version)
	if errors.Is(err, tables.ErrNoTable) {
		digest, rows, err = schemas.EmptyDigest, 0, nil
	}
	if err != nil {
		return err
	}
	if p.Seal = seal.Number; digest != seal.Digest || rows != seal.Rows {
		p.Unsealed = digest
	}
	return nil
}
