package tables

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// OfTopic lists what the database has of a topic, views before tables: its views, what is derived from its rows, what rebuilds left, and
// its table last. A view or table of the plain names that Almanac did not make is not in it; names with a dot are Almanac's alone.
func (db *DB) OfTopic(ctx context.Context, topic string) (names []string, err error) {
	if err := schemas.ValidateTopicName(topic); err != nil {
		return nil, err
	}
	return db.names(ctx, "tables of topic "+topic,
		"SELECT name FROM system.tables WHERE database = $1 AND ("+
			"engine = 'View' AND startsWith(comment, $2) AND has($3, name) OR "+
			"engine != 'View' AND (name = $4 AND startsWith(comment, $5) OR startsWith(name, $6) OR match(name, $7))"+
			") ORDER BY engine != 'View', name = $4, name",
		db.Database, viewMark, schemas.TopicViews(topic), topic, schemas.TableMark, topic+".", "^"+regexp.QuoteMeta(topic)+KeptInfix+"[0-9]{8}T[0-9]{6}Z$")
}

// RowsOf counts the rows of tables, by ClickHouse's metadata.
func (db *DB) RowsOf(ctx context.Context, names []string) (rows uint64, err error) {
	if len(names) == 0 {
		return 0, nil
	}
	err = db.each(ctx, "rows of "+strings.Join(names, ", "), func(scan scan) error { return scan(&rows) },
		"SELECT toUInt64(ifNull(sum(total_rows), 0)) FROM system.tables WHERE database = $1 AND has($2, name) AND engine != 'View'", db.Database, names)
	return rows, err
}

// DropWhole drops a table or view of whatever size, if there is one, and returns once its files are gone.
func (db *DB) DropWhole(ctx context.Context, name string) error {
	return db.ddl(ctx, "dropping table "+name, fmt.Sprintf("DROP TABLE IF EXISTS %s SYNC SETTINGS max_table_size_to_drop = 0, max_partition_size_to_drop = 0", sql.QuotedTable(db.Database, name)))
}
