package tables

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// An insert asserts what its own server has. With replicas that is not what is stored: the rows
// are on another server, or come later. So tables are those of the definitions, on one server, in a
// database that does not replicate its tables.

// localDatabases are the engines of databases whose tables are as they were made. Overlay is the
// default database of clickhouse-local.
var localDatabases = []string{"Atomic", "Ordinary", "Overlay"}

// Foreign finds the topics of which a table is not of the engine that Almanac makes it with, from
// one statement. The errors are ErrForeignTable.
func (db *DB) Foreign(ctx context.Context, topics ...schemas.Topic) (map[string]error, error) {
	out := map[string]error{}
	if len(topics) == 0 {
		return out, nil
	}
	engines := map[string]string{} // of tables; of the database under ""
	q := "SELECT name, engine FROM system.tables WHERE database = $1"
	args := []any{db.Database}
	if len(topics) == 1 {
		q, args = q+" AND (name = $2 OR startsWith(name, $3))", append(args, topics[0].Name, schemas.DerivedTable(topics[0].Name, ""))
	}
	err := db.each(ctx, "engines of tables in "+db.Database, func(scan scan) error {
		var name, engine string
		err := scan(&name, &engine)
		engines[name] = engine
		return err
	}, q+" UNION ALL SELECT '', engine FROM system.databases WHERE name = $1", args...)
	if err != nil {
		return nil, err
	}
	for i := range topics {
		if err := foreign(&topics[i], db.Database, engines); err != nil {
			out[topics[i].Name] = err
		}
	}
	return out, nil
}

// TopicRows counts the rows of each topic's table, from one statement on metadata.
func (db *DB) TopicRows(ctx context.Context) (map[string]uint64, error) {
	out := map[string]uint64{}
	err := db.each(ctx, "rows of tables in "+db.Database, func(scan scan) error {
		var name string
		var rows uint64
		err := scan(&name, &rows)
		if schemas.ValidateTopicName(name) == nil {
			out[name] = rows
		}
		return err
	}, "SELECT name, ifNull(total_rows, 0) FROM system.tables WHERE database = $1 AND engine = 'MergeTree' AND startsWith(comment, $2)", db.Database, schemas.TableMark)
	return out, err
}

// foreign says which table of a topic, or their database, is of an engine that it may not have.
func foreign(t *schemas.Topic, database string, engines map[string]string) error {
	if e := engines[""]; e != "" && !slices.Contains(localDatabases, e) {
		return fmt.Errorf("%w: database %s is of engine %s, whose tables may be those of several servers. Almanac stores each event once only on one server: "+
			"name another database, or make this one with ENGINE = Atomic", ErrForeignTable, database, e)
	}
	made := map[string]string{t.Name: sql.CreateTable(t, database)}
	for _, name := range t.DerivedTables() {
		made[schemas.DerivedTable(t.Name, name)] = sql.CreateDerived(t, database, name)
	}
	for table, ddl := range made {
		if e := engines[table]; e != "" && e != engineOf(ddl) {
			return fmt.Errorf("%w: table %s.%s is of engine %s, and inserts can be asserted only in a table of engine %s on one server: "+
				"nothing is stored there. Rename it; it is made again and `almanac repair` stores what the streams still have", ErrForeignTable, database, table, e, engineOf(ddl))
		}
	}
	return nil
}

// engineOf is the engine of a table's definition.
func engineOf(ddl string) string {
	m := definedEngine.FindStringSubmatch(ddl)
	if m == nil {
		return ""
	}
	return m[1]
}

var definedEngine = regexp.MustCompile(`(?m)^ENGINE = (\w+)`)
