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
	q := fmt.Sprintf("SELECT %[1]s, argMax(meant, at), min(meant), argMax(toUnixTimestamp64Nano(%[3]s), at), argMax(%[4]s, at), concat('/', argMax(%[7]s, at)) "+
		"FROM (SELECT %[1]s, %[3]s, %[7]s, (%[2]s) AS meant, %[8]s AS at, %[4]s FROM %[5]s WHERE %[9]s AND %[1]s > {after:String}) "+
		"GROUP BY %[1]s HAVING max(meant) ORDER BY %[1]s LIMIT %[6]d FORMAT TSV",
		kinds.ColDocID, c.SQL, kinds.ColCreated, kinds.ColVersion, sql.QuotedTable(db.Database, topic), n, kinds.ColPath, kinds.ColSeq, sql.InLane(lane))
	err = db.lines(ctx, &Select{SQL: q, Params: params, Settings: settings()}, func(line string) error {
		var d Meant
		var last, all int
		if _, err := fmt.Sscan(line, &d.ID, &last, &all, &d.Created, &d.Version, &d.Path); err != nil {
			return fmt.Errorf("ClickHouse's answer is %q: %w", line, err)
		}
		d.Last, d.All, d.Path = last == 1, all == 1, d.Path[1:] // the slash lets an empty path be read
		docs = append(docs, d)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("documents of topic %q: %w", topic, err)
	}
	return docs, nil
}
