package tables

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// InShards is a condition that selects the partitions, of which there is at
// least one.
func InShards(keys []schemas.ShardRef) string {
	var b strings.Builder
	b.WriteString("(month, shard) IN (")
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "(%d,%d)", uint32(k.Month), uint64(k.ID))
	}
	return b.String() + ")"
}

// storedChunk is how many partitions one statement of StoredOf names: some 30
// bytes each of the 256 KiB that ClickHouse parses.
const storedChunk = 2000

// StoredOf is what the given partitions hold, from metadata; those without rows
// are missing, as all are when the table was not made yet.
func (db *DB) StoredOf(ctx context.Context, topic string, keys []schemas.ShardRef) (map[schemas.Shard]schemas.Stored, error) {
	out := make(map[schemas.Shard]schemas.Stored, len(keys))
	for some := range slices.Chunk(keys, storedChunk) {
		err := db.eachMade(ctx, fmt.Sprintf("heads of topic %q", topic), func(scan scan) error {
			var id uint64
			var s schemas.Stored
			err := scan(&id, &s.Rows, &s.Head, &s.MinTs, &s.MaxTs)
			out[schemas.Shard(id)] = s
			return err
		}, "SELECT shard, count(), max(pos), toUnixTimestamp64Nano(min(ts)), toUnixTimestamp64Nano(max(ts)) FROM "+
			sql.QuotedTable(db.Database, topic)+" WHERE "+InShards(some)+" GROUP BY shard SETTINGS "+planOnly)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// AllStored is what every partition of a topic's table holds, from metadata: none when the
// table was not made yet.
func (db *DB) AllStored(ctx context.Context, topic string) (map[schemas.ShardRef]schemas.Stored, error) {
	out := map[schemas.ShardRef]schemas.Stored{}
	err := db.eachMade(ctx, fmt.Sprintf("shards of topic %q", topic), ofShard(topic, func(read func(...any) (schemas.ShardRef, error)) error {
		var s schemas.Stored
		ref, err := read(&s.Rows, &s.Head, &s.MinTs, &s.MaxTs)
		out[ref] = s
		return err
	}), "SELECT month, shard, count(), max(pos), toUnixTimestamp64Nano(min(ts)), toUnixTimestamp64Nano(max(ts)) FROM "+
		sql.QuotedTable(db.Database, topic)+" GROUP BY month, shard SETTINGS "+planOnly)
	return out, err
}

// Stored counts a shard's rows, from metadata, without its head.
func (db *DB) Stored(ctx context.Context, ref schemas.ShardRef) (schemas.Stored, error) {
	var out schemas.Stored
	q := fmt.Sprintf("SELECT count(), toUnixTimestamp64Nano(min(ts)), toUnixTimestamp64Nano(max(ts)) FROM %s WHERE month = %d AND shard = %d SETTINGS "+planOnly,
		sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID))
	if err := db.conn.QueryRow(ctx, q).Scan(&out.Rows, &out.MinTs, &out.MaxTs); err != nil {
		return out, fmt.Errorf("rows of %s: %w", ref, Refusal(err))
	}
	return out, nil
}

// Count is a shard's rows, distinct ids and head, from one statement.
type Count struct {
	Month                schemas.Month
	Rows, Distinct, Head uint64
	IDs                  uint64 // schemas.IDSumSQL
	MinTs, MaxTs         int64  // unix ns
}

// Counts counts every shard of a topic: none when its table was not made yet.
func (db *DB) Counts(ctx context.Context, topic string) (map[schemas.Shard]Count, error) {
	return db.counts(ctx, topic, "")
}

func (db *DB) counts(ctx context.Context, topic, where string) (map[schemas.Shard]Count, error) {
	out := map[schemas.Shard]Count{}
	err := db.eachMade(ctx, fmt.Sprintf("counting topic %q", topic), ofShard(topic, func(read func(...any) (schemas.ShardRef, error)) error {
		var c Count
		ref, err := read(&c.Rows, &c.Distinct, &c.IDs, &c.Head, &c.MinTs, &c.MaxTs)
		c.Month = ref.Month
		out[ref.ID] = c
		return err
	}), "SELECT month, shard, count(), uniqExact(id), "+schemas.IDSumSQL+", max(pos), toUnixTimestamp64Nano(min(ts)), toUnixTimestamp64Nano(max(ts)) FROM "+
		sql.QuotedTable(db.Database, topic)+where+" GROUP BY month, shard SETTINGS max_bytes_before_external_group_by = 1000000000")
	return out, err
}
