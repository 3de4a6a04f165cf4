package sinks

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// erasedOf returns the erasures of a topic that have ended: what they mean is not stored any more.
func (s *Sinks) erasedOf(ctx context.Context, topic string) (ledger.Erasures, error) {
	all, err := s.ledger.ForWriter(ctx, topic)
	return all.Only(ledger.Erased), err
}

// filterErased holds a batch against the erasures that cover it, and returns how many
// rows may be stored. It happens only when ClickHouse was restored from an older
// copy: what is covered had been stored before it was erased.
func (s *Sinks) filterErased(ctx context.Context, topic *schemas.Topic, b *batch, cover ledger.Cover) (left uint64, err error) {
	keep, params := cover.Keep()
	c := tables.Condition{SQL: keep, Params: params}
	var r frame.Reader
	var blocks [][]byte
	size := 0
	for i, f := range b.frames {
		if err := r.Open(f.Payload, topic, b.schema); err != nil {
			return 0, fmt.Errorf("sinks: a frame of topic %q: %w", topic.Name, err)
		}
		blocks = append(blocks, slices.Clone(r.Raw()))
		if size += len(r.Raw()); size < maxFilterBytes && i < len(b.frames)-1 {
			continue
		}
		n, err := s.cfg.DB.CountFresh(ctx, topic, b.schema, blocks, c)
		if err != nil {
			return 0, err
		}
		left, blocks, size = left+n, nil, 0
	}
	if left < b.rows {
		b.keep = c
	}
	return left, nil
}

// maxFilterBytes is what one statement counts, decompressed, give or take a frame.
const maxFilterBytes = 32 << 20

// erased says whether erasures explain that a shard has fewer rows up to pos than
// its frames brought.
func (s *Sinks) erased(ctx context.Context, ref schemas.ShardRef, pos, brought, rows uint64) bool {
	t, err := s.cfg.Registry.ErasureRecord(ctx, ref)
	if err != nil {
		return false
	}
	return t.Explains(pos, brought, rows)
}
