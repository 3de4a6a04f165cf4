package tables

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Newest is the newest stored version of a document.
type Newest struct {
	ID, Path, Op     string
	Created, Changed int64 // unix ns
	Version, Seq     uint64
	Size             int // of the body, in bytes
	Month            schemas.Month
	Shard            schemas.Shard
}

// NewestDocuments calls f with the newest stored version of each document of a topic's lane, or of
// those of its documents that are listed, in the order of their ids.
func (db *DB) NewestDocuments(ctx context.Context, topic string, lane int, ids []string, f func(Newest) error) error {
	where, params := sql.InLane(lane), map[string]string{}
	if ids != nil {
		where, params["ids"] = where+" AND "+kinds.ColDocID+" IN {ids:Array(String)}", arrayOf(ids)
	}
	q := sql.NewestDocuments{Table: sql.QuotedTable(db.Database, topic), Where: where}.SQL()
	err := db.Lines(ctx, &Select{SQL: q, Params: params, Settings: Settings()}, func(line string) error {
		var d Newest
		var month uint32
		var shard uint64
		if _, err := fmt.Sscan(line, &d.ID, &d.Op, &d.Created, &d.Changed, &d.Version, &d.Seq, &d.Size, &month, &shard, &d.Path); err != nil {
			return fmt.Errorf("ClickHouse's answer is %q: %w", line, err)
		}
		d.Month, d.Shard, d.Path = schemas.Month(month), schemas.Shard(shard), d.Path[1:]
		return f(d)
	})
	if err != nil {
		return fmt.Errorf("documents of topic %q: %w", topic, err)
	}
	return nil
}

// arrayOf is ids as the value of an Array(String) parameter; an id has no character that
// would be quoted.
func arrayOf(ids []string) string {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '\''), id...), '\'')
	}
	return string(append(b, ']'))
}
