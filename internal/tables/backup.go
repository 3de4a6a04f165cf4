package tables

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Held is a table with what it has.
type Held struct {
	Name string
	// Rows, and partitions: one for each shard.
	Rows, Partitions uint64
	// Policy is its storage policy.
	Policy string
}

// All lists the tables of the database that have rows of their own, but for those of a step that is under way.
func (db *DB) All(ctx context.Context) (all []Held, err error) {
	err = db.each(ctx, "tables of "+db.Database, func(scan scan) error {
		var h Held
		if err := scan(&h.Name, &h.Rows, &h.Partitions, &h.Policy); err != nil {
			return err
		}
		all = append(all, h)
		return nil
	}, "SELECT t.name, ifNull(t.total_rows, 0), toUInt64(p.n), t.storage_policy FROM system.tables AS t LEFT JOIN "+
		"(SELECT table, uniqExact(partition_id) AS n FROM system.parts WHERE active AND database = $1 GROUP BY table) AS p ON p.table = t.name "+
		"WHERE t.database = $1 AND endsWith(t.engine, 'MergeTree') ORDER BY t.name", db.Database)
	return slices.DeleteFunc(all, func(h Held) bool { return Passing(h.Name) || strings.Contains(h.Name, fenceInfix) }), err
}

// CopyProgress is how far a BACKUP or RESTORE is.
type CopyProgress struct{ Files, Bytes uint64 }

// copyStep is how often ClickHouse is asked how far it is.
const copyStep = 100 * time.Millisecond

// BackUp has ClickHouse write a backup of tables as files into the folder to, below where it keeps backups. What the
// backup in the folder base has is not written again; empty: all is. Of base only its metadata needs to be there.
func (db *DB) BackUp(ctx context.Context, names []string, to, base string, progress func(CopyProgress)) error {
	settings := ""
	if base != "" {
		settings = " SETTINGS base_backup = File('" + base + "')"
	}
	return db.copied(ctx, "backing up "+strings.Join(names, ", "), "BACKUP "+tableList(db.Database, "", names)+" TO File('"+to+"')"+settings, progress)
}

// Restore has ClickHouse make tables of a backup of a database that is whole in a folder: under the storage policy that each had,
// or with ownPolicy under that of a new table.
func (db *DB) Restore(ctx context.Context, database string, names []string, from string, ownPolicy bool, progress func(CopyProgress)) error {
	settings := ""
	if ownPolicy {
		settings = " SETTINGS storage_policy = ''"
	}
	return db.copied(ctx, "restoring "+strings.Join(names, ", "), "RESTORE "+tableList(database, db.Database, names)+" FROM File('"+from+"')"+settings, progress)
}

// tableList are tables of a database, and what they are to be in another.
func tableList(database, as string, names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = "TABLE " + sql.QuotedTable(database, name)
		if as != "" {
			list[i] += " AS " + sql.QuotedTable(as, name)
		}
	}
	return strings.Join(list, ", ")
}

// copied starts such a statement and waits for its end.
func (db *DB) copied(ctx context.Context, what, statement string, progress func(CopyProgress)) error {
	var id, status string
	if err := db.conn.QueryRow(ctx, statement+" ASYNC").Scan(&id, &status); err != nil {
		return fmt.Errorf("%s: %w", what, Refusal(err))
	}
	for {
		var p CopyProgress
		var cause string
		err := db.conn.QueryRow(ctx, "SELECT toString(status), error, toUInt64(num_files), toUInt64(uncompressed_size) FROM system.backups WHERE id = $1", id).
			Scan(&status, &cause, &p.Files, &p.Bytes)
		if err != nil {
			return fmt.Errorf("%s: how far it is: %w", what, Refusal(err))
		}
		if progress != nil {
			progress(p)
		}
		switch status {
		case "BACKUP_CREATED", "RESTORED":
			return nil
		case "CREATING_BACKUP", "RESTORING":
		default:
			cause, _, _ = strings.Cut(firstLine(cause), ", Stack trace")
			return fmt.Errorf("%s: ClickHouse says %s: %s", what, status, cause)
		}
		if err := backoff.Sleep(ctx, copyStep); err != nil {
			return err
		}
	}
}

// MarkRestore makes the empty database that says that tables are being restored, and of what. BeingRestored reports whether it is
// there, RestoredFrom of what, and UnmarkRestore removes it.
func (db *DB) MarkRestore(ctx context.Context, of string) error {
	return db.DDL(ctx, "marking the target", "CREATE DATABASE IF NOT EXISTS "+sql.QuoteName(schemas.RestoringDatabase(db.Database))+" ENGINE = Atomic COMMENT '"+quoted(of)+"'")
}

// RestoredFrom is what MarkRestore was told; empty where there is no mark.
func (db *DB) RestoredFrom(ctx context.Context) (of string, err error) {
	names, err := db.names(ctx, "databases", "SELECT comment FROM system.databases WHERE name = $1", schemas.RestoringDatabase(db.Database))
	if len(names) > 0 {
		of = names[0]
	}
	return of, err
}

// BeingRestored is described there.
func (db *DB) BeingRestored(ctx context.Context) (marked bool, err error) {
	names, err := db.names(ctx, "databases", "SELECT name FROM system.databases WHERE name = $1", schemas.RestoringDatabase(db.Database))
	return len(names) > 0, err
}

// UnmarkRestore is described there.
func (db *DB) UnmarkRestore(ctx context.Context) error {
	return db.DDL(ctx, "unmarking the target", "DROP DATABASE IF EXISTS "+sql.QuoteName(schemas.RestoringDatabase(db.Database))+" SYNC")
}

// DropForRestore drops a table that a restore which was killed left.
func (db *DB) DropForRestore(ctx context.Context, name string) error {
	return db.DDL(ctx, "dropping table "+name, "DROP TABLE IF EXISTS "+sql.QuotedTable(db.Database, name)+" SYNC SETTINGS max_table_size_to_drop = 0, max_partition_size_to_drop = 0")
}

// MakeDatabase makes the database of the tables where it is missing.
func (db *DB) MakeDatabase(ctx context.Context) error {
	return db.DDL(ctx, "making database "+db.Database, "CREATE DATABASE IF NOT EXISTS "+sql.QuoteName(db.Database)+" ENGINE = Atomic")
}
