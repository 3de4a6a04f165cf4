package tables

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// LastRecord is the last record of a front that a shard has: its sequence, and its time in unix
// ns. Zero where the shard does not have one.
func (db *DB) LastRecord(ctx context.Context, ref schemas.ShardRef) (seq uint64, ts int64, err error) {
	q := fmt.Sprintf("SELECT toUInt64(max(%[1]s)), toUnixTimestamp64Nano(argMax(%[2]s, %[1]s)) FROM %[3]s WHERE month = %[4]d AND shard = %[5]d",
		kinds.ColSeq, schemas.ColTs, sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID))
	if err := db.conn.QueryRow(ctx, q).Scan(&seq, &ts); err != nil {
		return 0, 0, fmt.Errorf("last record of %s: %w", ref, Refusal(err))
	}
	return seq, ts, nil
}
