package tables

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// A table that an older version made gets this version's settings, once: what an operator
// changed since stays.
func TestSettingsReachOldTables(t *testing.T) {
	t.Parallel()
	db, srv := open(t)
	topic := schemas.NewTopic("app")
	old := strings.Replace(topic.CreateTable(db.Database), "merge_selector_base = 100", "merge_selector_base = 5", 1)
	old = strings.Replace(old, topic.TableComment(), "", 1)
	for _, q := range []string{"CREATE DATABASE IF NOT EXISTS " + srv.Database, old} {
		if err := db.conn.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	settings := func() (engine string) {
		t.Helper()
		if err := db.Ensure(t.Context(), &topic); err != nil {
			t.Fatal(err)
		}
		if err := db.conn.QueryRow(t.Context(), "SELECT engine_full FROM system.tables WHERE database = $1 AND name = 'app'", db.Database).Scan(&engine); err != nil {
			t.Fatal(err)
		}
		return engine
	}
	if got := settings(); !strings.Contains(got, "merge_selector_base = 100") {
		t.Errorf("the old table has %s", got)
	}
	if err := db.conn.Exec(t.Context(), "ALTER TABLE "+schemas.QuotedTable(db.Database, "app")+" MODIFY SETTING merge_selector_base = 30"); err != nil {
		t.Fatal(err)
	}
	if got := settings(); !strings.Contains(got, "merge_selector_base = 30") {
		t.Errorf("an operator's setting went: %s", got)
	}
}
