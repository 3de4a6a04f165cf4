package tables

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Event is what makes an event the one it is.
type Event struct {
	ID schemas.ID
	Ts int64 // unix ns
}

// Events reads which events a shard has between two positions (above lo, up to hi) and
// how often each: those of one frame, usually.
func (db *DB) Events(ctx context.Context, ref schemas.ShardRef, lo, hi uint64) (map[Event]int, error) {
	out := map[Event]int{}
	q := fmt.Sprintf("SELECT id, toUnixTimestamp64Nano(ts) FROM %s WHERE month = %d AND shard = %d AND pos > %d AND pos <= %d FORMAT TSV",
		sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID), lo, hi)
	err := db.Lines(ctx, &Select{SQL: q, Settings: Settings()}, func(line string) error {
		var id string
		var ev Event
		if _, err := fmt.Sscan(line, &id, &ev.Ts); err != nil {
			return fmt.Errorf("ClickHouse's answer is %q: %w", line, err)
		}
		var err error
		ev.ID, err = schemas.ParseID(id)
		out[ev]++
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("events of %s: %w", ref, err)
	}
	return out, nil
}
