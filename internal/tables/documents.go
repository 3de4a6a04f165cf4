package tables

import (
	"context"
	"fmt"
	"maps"

	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Meant is a document with versions that fulfil a condition.
type Meant struct {
	ID string
	// Last: its last stored version does. All: every one does.
	Last, All bool
	// Path, Created (unix ns) and Version are those of its last version.
	Path    string
	Created int64
	Version uint64
}

// AmongDocuments is a condition that only versions of some documents fulfil.
func AmongDocuments(c Condition, ids []string) Condition {
	params := map[string]string{"among": arrayOf(ids)}
	maps.Copy(params, c.Params)
	return Condition{SQL: "(" + c.SQL + ") AND " + kinds.ColDocID + " IN {among:Array(String)}", Params: params}
}

// MeantDocuments lists up to n documents of a topic's lane with versions that fulfil a
// condition, in the order of their ids, after one.
func (db *DB) MeantDocuments(ctx context.Context, topic string, lane int, c Condition, after string, n int) (docs []Meant, err error) {
	params := map[string]string{"after": after}
	for k, v := range c.Params {
		params[k] = v
	}
	q := sql.MeantDocuments{Table: sql.QuotedTable(db.Database, topic), Where: sql.InLane(lane), Meant: c.SQL, Limit: n}.SQL()
	err = db.Lines(ctx, &Select{SQL: q, Params: params, Settings: Settings()}, func(line string) error {
		var d Meant
		var last, all int
		if _, err := fmt.Sscan(line, &d.ID, &last, &all, &d.Created, &d.Version, &d.Path); err != nil {
			return fmt.Errorf("ClickHouse's answer is %q: %w", line, err)
		}
		d.Last, d.All, d.Path = last == 1, all == 1, d.Path[1:]
		docs = append(docs, d)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("documents of topic %q: %w", topic, err)
	}
	return docs, nil
}
