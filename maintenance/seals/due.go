package seals

import (
	"maps"
	"slices"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

// due is the seal that a shard is to get next, without its digest; false when it needs none,
// or not yet.
func due(t *schemas.Topic, e *registry.Shard, tally *registry.Tally, current map[schemas.ShardRef]schemas.Seal) (next schemas.Seal, needed bool) {
	old, sealed := current[e.Ref()]
	next = schemas.Seal{Topic: e.Topic, Shard: schemas.SealedShard(e.Ref()), Lane: e.Lane, Version: t.Version, Why: schemas.SealClosed, Replaces: old.Number}
	next.Erased, next.Erasures = erased(tally)
	next.Anonymised, next.AnonymisedAt = e.Anonymised, e.AnonymisedAt
	switch {
	case e.Status == registry.Dropped:
		next.Why, next.Digest = schemas.SealDropped, schemas.EmptyDigest
		return next, sealed && old.Why != schemas.SealDropped
	case e.Status != registry.Closed || tally.Pending != nil || !tally.ClearingAt.IsZero():
		return next, false
	case !sealed:
		return next, true
	case next.Erased != old.Erased:
		next.Why = schemas.SealErased
		return next, true
	case !next.AnonymisedAt.Equal(old.AnonymisedAt):
		next.Why = schemas.SealAnonymised
		return next, true
	}
	return next, false
}

// erased is how many rows of a shard erasures took, and which of them did.
func erased(tally *registry.Tally) (rows uint64, erasures []string) {
	for _, c := range tally.Gone {
		rows += c.Rows
	}
	for id, r := range maps.All(tally.Receipts) {
		if r.Rows > 0 {
			erasures = append(erasures, id)
		}
	}
	slices.Sort(erasures)
	return rows, erasures
}
