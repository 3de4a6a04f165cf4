package tables

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/almanac-events/almanac/schemas/sql"
)

// A mutation that names a table for one step is ended before that table goes, and does not
// hold up those that come after it.
func TestKilledMutation(t *testing.T) {
	t.Parallel()
	db, srv := open(t)
	ctx := t.Context()
	table := sql.QuotedTable(srv.Database, "sums")
	exec := func(q string) {
		t.Helper()
		if _, err := srv.SQL().ExecContext(ctx, q); err != nil {
			t.Fatal(q, err)
		}
	}
	exec("CREATE TABLE " + table + " (n UInt64) ENGINE = MergeTree ORDER BY n")
	exec("INSERT INTO " + table + " SELECT number FROM numbers(10)")
	exec("SYSTEM STOP MERGES " + table) // so that the mutation waits, as behind a busy server
	stop := errors.New("the caller stopped")
	err := db.WithStepTable(ctx, "sums", "(n UInt64) ENGINE = Memory", func(keys string) error {
		exec("INSERT INTO " + keys + " SELECT 3")
		exec(fmt.Sprintf("ALTER TABLE %s DELETE WHERE n IN (SELECT n FROM %s) SETTINGS mutations_sync = 0", table, keys))
		return stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	exec("SYSTEM START MERGES " + table)
	exec("ALTER TABLE " + table + " DELETE WHERE n = 5 SETTINGS mutations_sync = 2")
	var rows uint64
	if err := db.Conn().QueryRow(ctx, "SELECT count() FROM "+table).Scan(&rows); err != nil || rows != 9 {
		t.Errorf("%d rows, want 9: %v", rows, err)
	}
	var left uint64
	if err := db.Conn().QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = $1 AND startsWith(name, $2)", srv.Database, stepTables("sums")).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d tables are left: %v", left, err)
	}
}

// A mutation that a process left when it died is ended with the table that it names, and does
// not hold up those that come after it.
func TestAbandonedMutation(t *testing.T) {
	t.Parallel()
	db, srv := open(t)
	ctx := t.Context()
	table, keys := sql.QuotedTable(srv.Database, "sums"), sql.QuotedTable(srv.Database, stepTables("sums")+"dead")
	for _, q := range []string{
		"CREATE TABLE " + table + " (n UInt64) ENGINE = MergeTree ORDER BY n",
		"INSERT INTO " + table + " SELECT number FROM numbers(10)",
		"SYSTEM STOP MERGES " + table,
		"CREATE TABLE " + keys + " (n UInt64) ENGINE = Memory",
		fmt.Sprintf("ALTER TABLE %s DELETE WHERE n IN (SELECT n FROM %s) SETTINGS mutations_sync = 0", table, keys),
	} {
		if _, err := srv.SQL().ExecContext(ctx, q); err != nil {
			t.Fatal(q, err)
		}
	}
	if err := db.dropAbandoned(ctx, "sums", abandonedAfter); err != nil {
		t.Fatal(err)
	}
	count := func(q string, args ...any) (n uint64) {
		t.Helper()
		if err := db.Conn().QueryRow(ctx, q, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const tables = "SELECT count() FROM system.tables WHERE database = $1 AND startsWith(name, $2)"
	if n := count(tables, srv.Database, stepTables("sums")); n != 1 {
		t.Errorf("%d tables of steps after a young one was looked at, want 1", n)
	}
	if names, err := db.OfTopic(ctx, "sums"); err != nil || !slices.Contains(names, stepTables("sums")+"dead") {
		t.Errorf("a removal of the topic finds %q, %v", names, err)
	}
	if err := db.dropAbandoned(ctx, "sums", 0); err != nil {
		t.Fatal(err)
	}
	if n := count(tables, srv.Database, stepTables("sums")); n != 0 {
		t.Errorf("%d tables of steps are left", n)
	}
	if n := count("SELECT count() FROM system.mutations WHERE database = $1 AND NOT is_done AND NOT is_killed", srv.Database); n != 0 {
		t.Errorf("%d mutations are left that name a table which is gone", n)
	}
}
