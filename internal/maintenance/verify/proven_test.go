package verify

import (
	"testing"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Of a shard that lost its frames and that ended with rows which an erasure took, no row is missing.
func TestCutShardThatEndsErased(t *testing.T) {
	t.Parallel()
	const id = schemas.Shard(1)
	for _, c := range []struct {
		name    string
		stored  tables.Count
		missing uint64
	}{
		{"some are left", tables.Count{Rows: 5, Head: 3}, 0},
		{"none is left", tables.Count{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			tallies := map[schemas.Shard]ledger.ErasureRecord{id: {Gone: []ledger.Cut{{Pos: 4, Rows: 2}}}}
			e := registry.Shard{ID: id, Status: registry.Sealed, SealedAt: 4}
			s := &ShardReport{Stored: c.stored.Rows, Head: e.Head(c.stored.Head)}
			gone := &goneRows{before: tallies, after: tallies}
			s.cut(e, c.stored, gone)
			gone.take(s, id)
			if s.missing() != c.missing || s.Erased != 2 || s.Routed != c.stored.Rows+2 {
				t.Errorf("%s: %d of %d rows are missing and %d were erased", c.name, s.missing(), s.Routed, s.Erased)
			}
		})
	}
}
