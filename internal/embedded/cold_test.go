package embedded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// newColdEngine is newEngine with a second directory; empty: the one it had.
func newColdEngine(t *testing.T, dir, cold string) *embedded.ClickHouse {
	t.Helper()
	c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: embeddedtest.FindEngine(t), Dir: dir, ColdDir: cold})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refusesCold is what a start says that is to be refused.
func refusesCold(t *testing.T, dir, cold string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := newColdEngine(t, dir, cold).Run(ctx)
	if !errors.Is(err, embedded.ErrColdDir) {
		t.Fatalf("cold directory %q: %v, want %v", cold, err, embedded.ErrColdDir)
	}
	return err.Error()
}

// A restore that begins again empties the cold directory of the one before, and no other's.
func TestRestoreEmptiesItsColdDirectory(t *testing.T) {
	t.Parallel()
	for mark, emptied := range map[string]bool{"mine": true, "another": false} {
		base := t.TempDir()
		dir, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: filepath.Join(base, "data"), MinFreeBytes: -1, Restoring: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = dir.Close() }()
		if err := dir.BeginRestore(); err != nil {
			t.Fatal(err)
		}
		cold := filepath.Join(base, "cold")
		for path, text := range map[string]string{
			filepath.Join(cold, "COLD"): mark + "\n", filepath.Join(cold, "data", "part", "data.bin"): "rows",
			filepath.Join(dir.ClickHouseDir(), "cold.json"): `{"path":"` + cold + `","id":"mine"}`,
		} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := dir.BeginRestore(); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(cold)
		if err != nil || emptied != (len(left) == 0) {
			t.Errorf("the mark of %s: %v, left %v", mark, err, left)
		}
		if _, err := os.Stat(dir.ClickHouseDir()); err == nil {
			t.Errorf("the mark of %s: the engine's directory is left", mark)
		}
	}
}

// A partition that was moved to the second directory is there after the engine was killed, after a start that names no
// directory, and after the directory itself was moved. A start without it is refused: the rows would seem gone.
func TestColdDirectory(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir, cold := filepath.Join(base, "clickhouse"), filepath.Join(base, "second", "cold")
	for _, wrong := range []string{dir, filepath.Join(dir, "data", "x"), base} {
		refusesCold(t, dir, wrong)
	}
	c := newColdEngine(t, dir, cold)
	stop := embeddedtest.Run(t, c)
	must(t, c, "CREATE TABLE almanac.moved (n UInt64, p UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY n")
	must(t, c, "INSERT INTO almanac.moved SELECT number, number % 2 FROM numbers(1000)")
	must(t, c, "ALTER TABLE almanac.moved MODIFY SETTING storage_policy = '"+embedded.StoragePolicy+"'")
	must(t, c, "ALTER TABLE almanac.moved MOVE PARTITION ID '1' TO VOLUME '"+embedded.VolumeCold+"'")
	const where = "SELECT groupArray((partition_id, disk_name)) FROM (SELECT partition_id, disk_name FROM system.parts WHERE table = 'moved' AND active ORDER BY 1)"
	const want = "[('0','default'),('1','cold')]"
	look := func(c *embedded.ClickHouse) {
		t.Helper()
		if got := must(t, c, where); got != want {
			t.Errorf("the parts are at %s, want %s", got, want)
		}
		if got := must(t, c, "SELECT sum(n) FROM almanac.moved"); got != "499500" {
			t.Errorf("the sum is %s", got)
		}
	}
	look(c)
	if embedded.Confines() {
		mark := filepath.Join(cold, "COLD")
		if got, err := ask(t, c.HTTPURL(), c.User(), c.Password(), "SELECT file('"+mark+"')"); err == nil {
			t.Errorf("SQL reads %s: %q", mark, got)
		}
	}
	if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Eventually(t, time.Minute, func() error { return c.Healthy(t.Context()) })
	look(c)
	refusesCold(t, filepath.Join(base, "other"), cold)
	stop()

	c = newColdEngine(t, dir, "")
	stop = embeddedtest.Run(t, c)
	look(c)
	stop()

	elsewhere := filepath.Join(base, "elsewhere")
	if err := os.Rename(cold, elsewhere); err != nil {
		t.Fatal(err)
	}
	if text := refusesCold(t, dir, ""); !strings.Contains(text, cold) {
		t.Errorf("it does not name %s: %s", cold, text)
	}
	if err := os.MkdirAll(cold, 0o700); err != nil { // as a mount point whose disk is not there
		t.Fatal(err)
	}
	refusesCold(t, dir, cold)
	c = newColdEngine(t, dir, elsewhere)
	embeddedtest.Run(t, c)
	look(c)
}
