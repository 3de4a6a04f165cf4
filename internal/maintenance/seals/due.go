package seals

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// due is the seal that a shard is to get next, without its digest; false when it needs none,
// or not yet.
func due(t *schemas.Topic, e *registry.Shard, record *ledger.ErasureRecord, current map[schemas.ShardRef]schemas.Seal, now time.Time) (next schemas.Seal, needed bool) {
	old, sealed := current[e.Ref()]
	next = schemas.Seal{Topic: e.Topic, Shard: schemas.PublicShard(e.Ref()), Lane: e.ID.Lane(), Version: t.Version, Why: schemas.SealClosed, Replaces: old.Number}
	next.Erased, next.Erasures = erased(record)
	next.Anonymised, next.AnonymisedAt = e.Anonymised, e.AnonymisedAt
	switch {
	case e.Status == registry.Dropped:
		next.Why, next.Digest = schemas.SealDropped, schemas.EmptyDigest
		return next, sealed && old.Why != schemas.SealDropped
	case e.Status != registry.Closed || changing(t, e, record, now):
		return next, false
	case !sealed:
		return next, true
	case next.Erased != old.Erased:
		next.Why, next.Unsealed = schemas.SealErased, unsealed(record, old.Number)
		return next, true
	case !next.AnonymisedAt.Equal(old.AnonymisedAt):
		next.Why = schemas.SealAnonymised
		return next, true
	}
	return next, false
}

// changing reports whether an erasure or retention may be changing the shard's rows. The mark
// of a clearing says so while it is fresh, and until fields that are due are cleared. An older
// one is of a process that died: nothing would ever take it away.
func changing(t *schemas.Topic, e *registry.Shard, record *ledger.ErasureRecord, now time.Time) bool {
	return record.Pending != nil || record.Clearing(now) || !record.ClearingAt.IsZero() && e.NextStep(t, now) == registry.AnonymiseIt
}

// erased is how many rows of a shard erasures took, and which of them did.
func erased(record *ledger.ErasureRecord) (rows uint64, erasures []string) {
	rows = ledger.SumCuts(record.Gone, math.MaxUint64)
	for id, r := range maps.All(record.Receipts) {
		if r.Rows > 0 {
			erasures = append(erasures, id)
		}
	}
	slices.Sort(erasures)
	return rows, erasures
}

// unsealed is the digest that a shard's rows had before an erasure, where that was not the
// digest of its seal of the number; empty: none differed.
func unsealed(record *ledger.ErasureRecord, seal uint64) string {
	for _, id := range slices.Sorted(maps.Keys(record.Receipts)) {
		if r := record.Receipts[id]; r.Seal == seal && r.Unsealed != "" {
			return r.Unsealed
		}
	}
	if r := record.Forgotten; r != nil && r.Seal == seal {
		return r.Unsealed
	}
	return ""
}
