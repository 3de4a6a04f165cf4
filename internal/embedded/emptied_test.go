package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// The definition of a table that a verb was making is empty, as a full disk leaves it: the engine
// starts without that table. The definition of another is not touched.
func TestEmptyDefinitionOfAPassingTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func() (*embedded.ClickHouse, func()) {
		c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{
			Engine: embeddedtest.FindEngine(t), Dir: dir, Passing: func(table string) bool { return strings.HasSuffix(table, ".rebuild") },
		})
		if err != nil {
			t.Fatal(err)
		}
		return c, embeddedtest.Run(t, c)
	}
	c, stop := start()
	for _, table := range []string{"`a.rebuild`", "stays"} {
		if _, err := ask(t, c.HTTPURL(), embedded.UserAlmanac, c.Password(), "CREATE TABLE "+c.Database()+"."+table+" (x UInt8) ENGINE = MergeTree ORDER BY x"); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	definition := func(name string) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "data", "store", "*", "*", name))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s is %v: %v", name, files, err)
		}
		return files[0]
	}
	empty := definition("a%2Erebuild.sql")
	if err := os.Truncate(empty, 0); err != nil {
		t.Fatal(err)
	}
	c, stop = start()
	if out, err := ask(t, c.HTTPURL(), embedded.UserAlmanac, c.Password(), "SELECT groupArray(name) FROM system.tables WHERE database = '"+c.Database()+"'"); err != nil || !strings.Contains(out, "['stays']") {
		t.Errorf("tables: %s, %v", out, err)
	}
	if _, err := os.Stat(empty); !os.IsNotExist(err) {
		t.Errorf("the empty definition is left: %v", err)
	}
	stop()
	other := definition("stays.sql")
	if err := os.Truncate(other, 0); err != nil {
		t.Fatal(err)
	}
	last, err := embedded.NewClickHouse(embedded.ClickHouseConfig{
		Engine: embeddedtest.FindEngine(t), Dir: dir, StartTimeout: time.Minute, Passing: func(string) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := last.Run(ctx); err == nil || !strings.Contains(err.Error(), "stays.sql") {
		t.Errorf("an engine with an empty definition of a table that stays: %v", err)
	}
	if info, err := os.Stat(other); err != nil || info.Size() != 0 {
		t.Errorf("the definition of a table that stays was touched: %v, %v", info, err)
	}
}
