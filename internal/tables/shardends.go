package tables

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// End is where a shard's rows are asked about.
type End struct {
	Ref schemas.ShardRef
	// Pos is the position; of ids, those up to it. A row below Least counts as if it were there.
	Pos, Least uint64
}

// endsChunk is how many shards one statement of AtEnds or WeightedIDs names: some 100 bytes each of the 256 KiB that
// ClickHouse parses, where the numbers are as long as they get.
const endsChunk = 1000

// AtEnds is At of many shards of a topic, each at a position of its own, by a statement for each thousand of them.
// What has no row is missing.
func (db *DB) AtEnds(ctx context.Context, topic string, ends []End) (map[schemas.ShardRef]Group, error) {
	out := make(map[schemas.ShardRef]Group, len(ends))
	for some := range slices.Chunk(ends, endsChunk) {
		pairs := make([]string, len(some))
		for i, e := range some {
			pairs[i] = fmt.Sprintf("(%d,%d)", uint64(e.Ref.ID), e.Pos)
		}
		q := sql.AtPositions{Table: sql.QuotedTable(db.Database, topic), Where: InShards(refsOf(some)), Positions: strings.Join(pairs, ","), IDSumSQL: schemas.IDSumSQL}.SQL()
		if err := db.eachMade(ctx, fmt.Sprintf("positions of topic %q", topic), ofShard(topic, func(read func(...any) (schemas.ShardRef, error)) error {
			var g Group
			ref, err := read(&g.Pos, &g.Rows, &g.Distinct, &g.IDs)
			out[ref] = g
			return err
		}), q); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Weighted is the sum of the ids of a shard's rows, and that of id times position (schemas.IDHashSQL).
type Weighted struct{ IDs, Weighted uint64 }

// WeightedIDs weighs the ids of many shards of a topic, each up to a position of its own, by a statement for each
// thousand of them. What has no row is missing.
func (db *DB) WeightedIDs(ctx context.Context, topic string, ends []End) (map[schemas.ShardRef]Weighted, error) {
	out := make(map[schemas.ShardRef]Weighted, len(ends))
	for some := range slices.Chunk(ends, endsChunk) {
		numbers := func(of func(End) uint64) string {
			all := make([]string, len(some))
			for i, e := range some {
				all[i] = strconv.FormatUint(of(e), 10)
			}
			return strings.Join(all, ",")
		}
		q := sql.WeightedIDs{
			Table: sql.QuotedTable(db.Database, topic), Where: InShards(refsOf(some)), HashSQL: schemas.IDHashSQL,
			Shards: numbers(func(e End) uint64 { return uint64(e.Ref.ID) }),
			Least:  numbers(func(e End) uint64 { return e.Least }), UpTo: numbers(func(e End) uint64 { return e.Pos }),
		}.SQL()
		if err := db.eachMade(ctx, fmt.Sprintf("positions of topic %q", topic), ofShard(topic, func(read func(...any) (schemas.ShardRef, error)) error {
			var w Weighted
			ref, err := read(&w.IDs, &w.Weighted)
			out[ref] = w
			return err
		}), q); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func refsOf(ends []End) []schemas.ShardRef {
	refs := make([]schemas.ShardRef, len(ends))
	for i, e := range ends {
		refs[i] = e.Ref
	}
	return refs
}
