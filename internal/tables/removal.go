package tables

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
			"engine != 'View' AND (name = $4 AND startsWith(comment, $5) OR startsWith(name, $6) OR startsWith(name, $8) OR match(name, $7))"+
			") ORDER BY engine != 'View', name = $4, name",
		db.Database, viewMark, schemas.TopicViews(topic), topic, schemas.TableMark, topic+".", "^"+regexp.QuoteMeta(topic)+KeptInfix+"[0-9]{8}T[0-9]{6}Z$", stepTables(topic))
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

// Fence is a table that stands for one drop that is about to be made: the drop is refused once the fence is gone.
type Fence struct {
	db   *DB
	name string
}

// fenceInfix is in the name of such a table.
const fenceInfix = ".fence."

// Fence makes one. It is among what OfTopic lists, so a removal cannot end before it is gone. ClickHouse has no other condition for a
// drop, and a caller that drops by name alone may be stopped until the name is another topic's.
func (db *DB) Fence(ctx context.Context, topic string) (*Fence, error) {
	f := &Fence{db, fmt.Sprintf("%s%s%016x", topic, fenceInfix, rand.Uint64())}
	return f, db.DDL(ctx, "making table "+f.name, fmt.Sprintf("CREATE TABLE %s (x UInt8) ENGINE = MergeTree ORDER BY tuple()", sql.QuotedTable(db.Database, f.name)))
}

// Drop drops the fence and then a table or view of whatever size, in one statement that ends where one of them is not there, and
// returns once the files are gone.
func (f *Fence) Drop(ctx context.Context, name string) error {
	err := f.db.DDL(ctx, "dropping table "+name, fmt.Sprintf("DROP TABLE %s, %s SYNC SETTINGS max_table_size_to_drop = 0, max_partition_size_to_drop = 0",
		sql.QuotedTable(f.db.Database, f.name), sql.QuotedTable(f.db.Database, name)))
	if refused := (*Error)(nil); errors.As(err, &refused) && refused.Code == codeUnknownTable {
		return nil
	}
	return err
}

// Open takes the fence away, with nothing behind it.
func (f *Fence) Open(ctx context.Context) error { return f.db.Drop(ctx, f.name) }
