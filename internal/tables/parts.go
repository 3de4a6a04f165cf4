package tables

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Parts returns a digest of each shard's parts: any insert, merge, delete, mutation,
// restored or replaced part gives another. It is made of the checksums that ClickHouse
// keeps of each part's files, and reads none of them: a byte that went bad on disk is not
// in it. Lightweight deletes that are not merged yet belong to no partition, so there is
// no digest at all while a table has one. Nor is there one for a table that was not made yet.
func (db *DB) Parts(ctx context.Context, topic string) (map[schemas.ShardRef]string, error) {
	out := map[schemas.ShardRef]string{}
	patched := false
	err := db.eachMade(ctx, fmt.Sprintf("parts of topic %q", topic), func(scan scan) error {
		var partition, digest string
		err := scan(&partition, &digest)
		patched = patched || strings.HasPrefix(partition, "patch-")
		if ref, ok := shardOfPartition(topic, partition); ok {
			out[ref] = digest
		}
		return err
	}, "SELECT partition_id, lower(hex(sipHash128(arraySort(groupArray((name, rows, hash_of_all_files)))))) FROM system.parts WHERE database = ? AND table = ? AND active GROUP BY partition_id",
		db.Database, topic)
	if patched {
		clear(out)
	}
	return out, err
}

// shardOfPartition reads what schemas.PartitionID writes.
func shardOfPartition(topic, partition string) (schemas.ShardRef, bool) {
	var month uint32
	var id uint64
	n, err := fmt.Sscanf(partition, "%d-%d-0-0", &month, &id)
	return schemas.ShardRef{Topic: topic, Month: schemas.Month(month), ID: schemas.Shard(id)}, err == nil && n == 2
}

// CountsOf is Counts of some shards alone.
func (db *DB) CountsOf(ctx context.Context, topic string, refs []schemas.ShardRef) (map[schemas.Shard]Count, error) {
	out := map[schemas.Shard]Count{}
	for some := range slices.Chunk(refs, storedChunk) {
		counts, err := db.counts(ctx, topic, " WHERE "+InShards(some))
		if err != nil {
			return nil, err
		}
		maps.Copy(out, counts)
	}
	return out, nil
}

// Damaged is a part that CheckParts found.
type Damaged struct{ Part, Message string }

// CheckParts has ClickHouse read every file of a topic's table and compare it with its
// checksum: every column of every row.
func (db *DB) CheckParts(ctx context.Context, topic string) (bad []Damaged, err error) {
	err = db.eachMade(ctx, fmt.Sprintf("checking the parts of topic %q", topic), func(scan scan) error {
		var d Damaged
		var passed bool
		err := scan(&d.Part, &passed, &d.Message)
		if err == nil && !passed {
			bad = append(bad, d)
		}
		return err
	}, "CHECK TABLE "+sql.QuotedTable(db.Database, topic)+" SETTINGS check_query_single_value_result = 0")
	return bad, err
}
