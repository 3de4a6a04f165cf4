package embedded_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// An account that asks SQL of some topics reads their tables and views. It does not read the others', nor learn their names.
func TestSQLAccountsReadTheirTopics(t *testing.T) {
	t.Parallel()
	c := newEngine(t, t.TempDir())
	account := access.SQLAccount([]string{"app", "auth"})
	embeddedtest.Run(t, c)
	if err := c.Admit(account); err != nil {
		t.Fatal(err)
	}
	first := c.PID()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Eventually(t, soon, func() error {
		if pid := c.PID(); pid == 0 || pid == first {
			return fmt.Errorf("the engine's process is %d, was %d", pid, first)
		}
		return c.Healthy(t.Context())
	})
	db := c.Database()
	for _, topic := range []string{"app", "auth", "hidden"} {
		must(t, c, "CREATE TABLE "+db+"."+topic+" (ts UInt64, s String) ENGINE = MergeTree ORDER BY ts")
		must(t, c, "INSERT INTO "+db+"."+topic+" VALUES (1, '"+topic+"')")
		must(t, c, "CREATE TABLE "+db+".`"+schemas.DerivedTable(topic, schemas.DerivedSeries)+"` (n UInt64) ENGINE = MergeTree ORDER BY n")
		for _, view := range schemas.TopicViews(topic) {
			must(t, c, "CREATE VIEW "+db+"."+view+" AS SELECT * FROM "+db+"."+topic)
		}
	}
	must(t, c, "CREATE TABLE "+db+"."+schemas.TableLedger+" (n UInt64) ENGINE = MergeTree ORDER BY n")
	must(t, c, "CREATE VIEW "+db+"."+schemas.ViewLag+" AS SELECT * FROM "+db+".hidden")
	as := func(sql string) (string, error) {
		return ask(t, c.HTTPURL(), account.Name, access.SQLPassword(c.ReaderPassword(), account.Name), strings.ReplaceAll(sql, "D.", db+"."))
	}
	visible := []string{"app", "app.series", "auth", "auth.series"}
	for _, topic := range []string{"app", "auth"} {
		visible = append(visible, schemas.TopicViews(topic)...)
	}
	slices.Sort(visible)
	for sql, want := range map[string]string{
		"SELECT s FROM D.app": "app",
		"SELECT s FROM D.auth JOIN D.app USING (ts) ORDER BY s":                                                     "auth",
		"SELECT s FROM D." + schemas.RecentView("app"):                                                              "app",
		"SELECT count() FROM D.`app.series`":                                                                        "0",
		"SELECT groupArray(name) FROM (SELECT name FROM system.tables WHERE database = '" + db + "' ORDER BY name)": "['" + strings.Join(visible, "','") + "']",
		"SELECT count() FROM system.columns WHERE table LIKE '%hidden%'":                                            "0",
		"SELECT count() FROM system.completions WHERE word LIKE '%hidden%'":                                         "0",
		"SELECT arraySort(groupUniqArray(s)) FROM merge('" + db + "', '^(app|auth)$')":                              "['app','auth']",
		"SELECT getSetting('readonly')":                                                                             "2",
	} {
		if got, err := as(sql); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", sql, got, err, want)
		}
	}
	for _, sql := range []string{
		"SELECT s FROM D.hidden", "SELECT s FROM D." + schemas.RecentView("hidden"), "SELECT * FROM D.`hidden.series`", "SELECT * FROM D." + schemas.TableLedger, "SELECT * FROM D." + schemas.ViewLag,
		"SELECT * FROM mergeTreeIndex('" + db + "', 'hidden')", "SHOW CREATE TABLE D.hidden", "EXISTS D.hidden", "DESCRIBE TABLE D.hidden", "SELECT count() FROM D.app WHERE s IN (SELECT s FROM D.hidden)",
		"SELECT * FROM system.parts", "SELECT * FROM system.processes", "SELECT * FROM system.users", "SELECT * FROM system.grants", "SELECT * FROM system.mutations", "SELECT * FROM system.data_skipping_indices",
		"SELECT * FROM remote('127.0.0.1', '" + db + ".hidden')", "SELECT * FROM file('/etc/hostname', 'LineAsString')", "INSERT INTO D.app VALUES (2, 'x')", "CREATE VIEW D.mine AS SELECT 1", "SELECT 1 SETTINGS readonly = 0",
		"SELECT 1 SETTINGS max_execution_time = 0", "EXECUTE AS reader SELECT s FROM D.hidden", "GRANT SELECT ON D.hidden TO " + account.Name,
	} {
		if got, err := as(sql); err == nil {
			t.Errorf("it may %q: %q", sql, got)
		} else if strings.Contains(err.Error(), "SYNTAX_ERROR") && !strings.HasPrefix(sql, "EXECUTE") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if got, err := as("SELECT groupUniqArray(s) FROM merge('" + db + "', '.*')"); err == nil && strings.Contains(got, "hidden") {
		t.Errorf("a merge of all tables shows %s", got)
	}
	if _, err := ask(t, c.HTTPURL(), account.Name, c.ReaderPassword(), "SELECT 1"); err == nil {
		t.Error("it came in with the reader's password")
	}
}
