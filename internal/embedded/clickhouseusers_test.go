package embedded_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// probe is a statement that takes one right. D is the database, T a table of it for this statement alone.
type probe struct{ right, on, sql string }

// probes are at least one statement for each right that an account has, and what none may do.
var probes = []probe{
	{"SELECT", "D.*", "SELECT count() FROM D.T"},
	{"INSERT", "D.*", "INSERT INTO D.T (n) VALUES (1)"},
	{"CREATE DATABASE", "D.*", "CREATE DATABASE IF NOT EXISTS D ENGINE = Atomic"},
	{"CREATE DATABASE", "D_engine_*.*", "CREATE DATABASE IF NOT EXISTS D_engine_x ENGINE = Atomic"},
	{"CREATE TABLE", "D.*", "CREATE TABLE D.`T.new` (n UInt64) ENGINE = MergeTree ORDER BY n"},
	{"TABLE ENGINE", "ReplacingMergeTree", "CREATE TABLE D.`T.replacing` (n UInt64) ENGINE = ReplacingMergeTree ORDER BY n"},
	{"TABLE ENGINE", "AggregatingMergeTree", "CREATE TABLE D.`T.aggregating` (n UInt64) ENGINE = AggregatingMergeTree ORDER BY n"},
	{"TABLE ENGINE", "Memory", "CREATE TABLE D.`T.memory` (n UInt64) ENGINE = Memory"},
	{"CREATE VIEW", "D.*", "CREATE VIEW D.`T.view` AS SELECT 1"},
	{"DROP VIEW", "D.*", "DROP VIEW D.`T.aview`"},
	{"DROP TABLE", "D.*", "DROP TABLE D.T"},
	{"DROP TABLE", "D._step_*", "DROP TABLE D.`_step_T.x` SYNC"},
	{"DROP TABLE", "D._tmp_replace_*", "CREATE OR REPLACE VIEW D.`T.aview` AS SELECT 2"},
	{"ALTER ADD COLUMN", "D.*", "ALTER TABLE D.T ADD COLUMN m UInt64"},
	{"ALTER DELETE", "D.*", "ALTER TABLE D.T DELETE WHERE n = 1"},
	{"ALTER UPDATE", "D.*", "ALTER TABLE D.T UPDATE k = 1 WHERE n = 1"},
	{"ALTER TABLE", "D.*", "ALTER TABLE D.T DROP COLUMN k"},
	{"ALTER TABLE", "D.*", "ALTER TABLE D.T ADD CONSTRAINT c CHECK 1"},
	{"ALTER SETTINGS", "D.*", "ALTER TABLE D.T MODIFY SETTING storage_policy = 'default'"},
	{"ALTER MOVE PARTITION", "D.*", "ALTER TABLE D.T MOVE PARTITION ID 'all' TO VOLUME 'default'"},
	{"OPTIMIZE", "D.*", "OPTIMIZE TABLE D.T"},
	{"CHECK", "D.*", "CHECK TABLE D.T"},
	{"SELECT", "system.parts", "SELECT count() FROM system.parts"},
	{"SELECT", "system.mutations", "SELECT count() FROM system.mutations"},
	{"SELECT", "system.processes", "SELECT count() FROM system.processes"},
	{"SELECT", "system.storage_policies", "SELECT count() FROM system.storage_policies"},
	{"DROP DATABASE", "D.*", "DROP DATABASE D"},
	{"TRUNCATE", "D.*", "TRUNCATE TABLE D.T"},
	{"SELECT", "default.*", "SELECT count() FROM default.other"},
	{"INSERT", "default.*", "INSERT INTO default.other VALUES (1)"},
	{"CREATE TABLE", "default.*", "CREATE TABLE default.mine (n UInt64) ENGINE = MergeTree ORDER BY n"},
	{"SELECT", "system.users", "SELECT count() FROM system.users"},
	{"READ", "FILE", "SELECT * FROM file('/etc/hostname', 'LineAsString')"},
	{"WRITE", "URL", "INSERT INTO FUNCTION url('http://127.0.0.1:1/', 'CSV', 'n UInt64') VALUES (1)"},
	{"READ", "REMOTE", "SELECT * FROM remote('127.0.0.1', 'system.one')"},
	{"SYSTEM", "*.*", "SYSTEM STOP MERGES D.T"},
	{"SYSTEM", "*.*", "SYSTEM SHUTDOWN"},
	{"ACCESS MANAGEMENT", "*.*", "CREATE USER mallory"},
	{"ACCESS MANAGEMENT", "*.*", "GRANT SELECT ON *.* TO reader"},
	{"CREATE FUNCTION", "*.*", "CREATE FUNCTION f AS x -> x"},
	{"CREATE DICTIONARY", "D.*", "CREATE DICTIONARY D.d (n UInt64) PRIMARY KEY n SOURCE(FILE(path '/etc/passwd' format 'CSV')) LAYOUT(FLAT()) LIFETIME(0)"},
	{"BACKUP", "D.*", "BACKUP TABLE D.T TO File('D.T')"},
	{"CREATE DATABASE", "D_restoring.*", "CREATE DATABASE IF NOT EXISTS D_restoring ENGINE = Atomic"},
	{"DROP DATABASE", "D_restoring.*", "DROP DATABASE D_restoring"},
}

// has reports whether an account has a right by the table.
func has(u *access.ClickHouseUser, p probe) bool {
	return slices.ContainsFunc(u.Grants, func(g access.TableGrant) bool {
		rights := strings.Split(g.Rights, ", ")
		return strings.ReplaceAll(g.On, "DATABASE", "D") == p.on && slices.ContainsFunc(rights, func(r string) bool {
			return r == p.right || r == "ALTER TABLE" && strings.HasPrefix(p.right, "ALTER ")
		})
	})
}

// The server allows each account what the table says, statement by statement, and nothing else.
func TestClickHouseUsersMayWhatTheTableSays(t *testing.T) {
	t.Parallel()
	c := newEngine(t, t.TempDir())
	embeddedtest.Run(t, c)
	must(t, c, "CREATE TABLE "+c.Database()+"."+schemas.TableLedger+" (n UInt64) ENGINE = MergeTree ORDER BY n")
	must(t, c, "CREATE TABLE default.other (n UInt64) ENGINE = MergeTree ORDER BY n")
	n := 0
	for _, u := range access.ClickHouseUsers() {
		name, password := c.Account(u.Name)
		for _, g := range u.Grants {
			for r := range strings.SplitSeq(g.Rights, ", ") {
				if len(u.Revokes) > 0 && r == "SELECT" && strings.HasPrefix(g.On, "DATABASE") {
					continue // not on all of it
				}
				on := strings.ReplaceAll(g.On, "DATABASE", c.Database())
				if got, err := ask(t, c.HTTPURL(), name, password, "CHECK GRANT "+r+" ON "+on); err != nil || got != "1" {
					t.Errorf("%s has no right %s on %s by the server: %q, %v", u.Name, r, on, got, err)
				}
			}
		}
		for _, p := range probes {
			n++
			table := fmt.Sprintf("t%d", n)
			fill := strings.NewReplacer("D.`_step_T", c.Database()+".`_step_"+table, "D.`T", c.Database()+".`"+table, "D.T", c.Database()+"."+table, "D_", c.Database()+"_", "D.", c.Database()+".", "DATABASE D", "DATABASE "+c.Database(), "EXISTS D ", "EXISTS "+c.Database()+" ")
			must(t, c, fill.Replace("CREATE TABLE D.T (n UInt64, k UInt64) ENGINE = MergeTree ORDER BY n"))
			must(t, c, fill.Replace("CREATE DATABASE IF NOT EXISTS D_restoring ENGINE = Atomic"))
			must(t, c, fill.Replace("CREATE VIEW D.`T.aview` AS SELECT 1"))
			must(t, c, fill.Replace("CREATE TABLE D.`_step_T.x` (n UInt64) ENGINE = Memory"))
			_, err := ask(t, c.HTTPURL(), name, password, fill.Replace(p.sql))
			if may := err == nil || strings.Contains(err.Error(), "NO_SUCH_DATA_PART"); may != has(&u, p) {
				t.Errorf("%s may %s: %t, %v; by the table: %t", u.Name, fill.Replace(p.sql), may, err, !may)
			}
		}
		_, err := ask(t, c.HTTPURL(), name, password, "SELECT count() FROM "+c.Database()+"."+schemas.TableLedger)
		if denied := err != nil && strings.Contains(err.Error(), "ACCESS_DENIED"); denied != (len(u.Revokes) > 0) {
			t.Errorf("%s reads the ledger: %v", u.Name, err)
		}
	}
	if got := must(t, c, "SELECT count() FROM system.users"); got != fmt.Sprint(len(access.ClickHouseUsers())+2) {
		t.Errorf("the server has %s users", got)
	}
	if name, password := c.Account("other"); password != "" {
		t.Errorf("an account without a password: %s", name)
	}
}
