package tables

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// StoredEnd is where a shard ends in ClickHouse.
type StoredEnd struct {
	Head, Rows uint64
	Record     uint64 // of a front, the last that it has; else 0
	At         int64  // that record's time, unix ns
}

// StoredEnd reads where a shard ends, from one statement; front says that its records come from one.
func (db *DB) StoredEnd(ctx context.Context, ref schemas.ShardRef, front bool) (e StoredEnd, err error) {
	record := "toUInt64(0), toInt64(0)"
	if front {
		record = fmt.Sprintf("toUInt64(max(%[1]s)), toUnixTimestamp64Nano(argMax(%[2]s, %[1]s))", kinds.ColSeq, schemas.ColTs)
	}
	q := fmt.Sprintf("SELECT max(pos), count(), %s FROM %s WHERE month = %d AND shard = %d", record, sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID))
	if err := db.conn.QueryRow(ctx, q).Scan(&e.Head, &e.Rows, &e.Record, &e.At); err != nil {
		return e, fmt.Errorf("end of %s: %w", ref, Refusal(err))
	}
	return e, nil
}
