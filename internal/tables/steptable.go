package tables

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Passing reports whether a table is one that a verb makes for its own time.
func Passing(table string) bool {
	return strings.HasSuffix(table, FreshSuffix) || strings.HasPrefix(table, schemas.StepPrefix)
}

// stepTables begins the names of those for one table.
func stepTables(table string) string { return schemas.StepPrefix + table + "." }

const (
	// dropTime bounds dropping such a table, also after the caller's context ended: a caller
	// that is told to end waits so long at most. What is left then is abandoned.
	dropTime = 30 * time.Second
	// abandonedAfter is the age from which such a table is one that a process left which died.
	// A step takes seconds. One that is still under way then fails, and its caller tries again:
	// its table goes with the mutation that names it.
	abandonedAfter = time.Hour
)

// WithStepTable makes a table for one step, calls f with its quoted name, and drops it again. Those
// that a crash left are dropped first. A mutation of the table that f leaves behind with an
// error is ended: without what it names it would fail forever, and hold up those after it.
func (db *DB) WithStepTable(ctx context.Context, table, definition string, f func(quoted string) error) (err error) {
	if err := db.dropAbandoned(ctx, table, abandonedAfter); err != nil {
		return err
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: see its documentation
	name := stepTables(table) + hex.EncodeToString(b[:])
	quoted := sql.QuotedTable(db.Database, name)
	if err := db.DDL(ctx, "making a table for a step in "+table, fmt.Sprintf("CREATE TABLE %s %s", quoted, definition)); err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
		defer cancel()
		if err != nil {
			err = errors.Join(err, db.killMutation(last, table, name))
		}
		err = errors.Join(err, db.DDL(last, "dropping the table of a step in "+table, "DROP TABLE IF EXISTS "+quoted+" SYNC"))
	}()
	return f(quoted)
}

// dropAbandoned drops tables of steps in a table that a crash left, and first the mutations
// that name them, which go on in the server after their process died.
func (db *DB) dropAbandoned(ctx context.Context, table string, age time.Duration) error {
	names, err := db.names(ctx, "tables of "+db.Database,
		"SELECT name FROM system.tables WHERE database = $1 AND startsWith(name, $2) AND metadata_modification_time <= now() - toIntervalSecond($3)", db.Database, stepTables(table), int(age.Seconds()))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := db.killMutation(ctx, table, name); err != nil {
			return err
		}
		if err := db.DDL(ctx, "dropping table "+name, "DROP TABLE IF EXISTS "+sql.QuotedTable(db.Database, name)+" SYNC"); err != nil {
			return err
		}
	}
	return nil
}

// killMutation ends mutations of a table that name another, which goes. What they did stays.
func (db *DB) killMutation(ctx context.Context, table, named string) error {
	if err := db.conn.Exec(ctx, "KILL MUTATION WHERE database = $1 AND table = $2 AND position(command, $3) > 0 SYNC", db.Database, table, named); err != nil {
		return fmt.Errorf("ending a mutation of %s: %w", table, Refusal(err))
	}
	return nil
}
