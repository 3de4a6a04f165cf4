package verify

import (
	"math"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// goneRows is what erasures took from a topic's shards, read before the rows
// were counted and after: an erasure under way meanwhile may be in the count or
// not.
type goneRows struct {
	before, after map[schemas.Shard]ledger.ErasureRecord
}

// stored says that no erasure was under way in the shard.
func (g *goneRows) stored(id schemas.Shard) bool {
	b, a := g.before[id], g.after[id]
	return b.Pending == nil && a.Pending == nil && len(b.Receipts) == len(a.Receipts) && ledger.SumCuts(b.Gone, math.MaxUint64) == ledger.SumCuts(a.Gone, math.MaxUint64)
}

// take takes from a shard's expected rows those that were erased.
func (g *goneRows) take(s *ShardReport, id schemas.Shard) {
	b, a := g.before[id], g.after[id]
	upTo := max(s.Head, s.proven)
	least, _ := b.GoneUpTo(upTo)
	_, most := a.GoneUpTo(upTo)
	s.Erased = erasedOf(s.Expected, s.Stored, least, most)
	s.Expected -= s.Erased
}

// erasedOf is how many of the frames' rows are gone on purpose: what is missing,
// as far as erasures account for it, and no less than they took for sure.
func erasedOf(brought, stored, least, most uint64) uint64 {
	missing := brought - min(brought, stored)
	return min(brought, max(least, min(missing, most)))
}
