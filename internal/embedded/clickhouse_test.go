package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"strings"

	"syscall"
	"testing"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newEngine gives an engine of this test's own, not yet running.
func newEngine(t *testing.T, dir string) *embedded.ClickHouse {
	t.Helper()
	c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{
		Engine: embeddedtest.FindEngine(t), Dir: dir,
		Log: func(level embedded.Level, part, text string) { t.Logf("%s %s: %s", level, part, text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends one statement over HTTP and gives the answer, whatever it is.
func ask(t *testing.T, base, user, password, sql string) (string, error) {
	t.Helper()
	return askIn(t.Context(), base, user, password, sql)
}

func askIn(ctx context.Context, base, user, password, sql string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/", strings.NewReader(sql))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-ClickHouse-User", user)
	req.Header.Set("X-ClickHouse-Key", password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", resp.Status, text)
	}
	return text, nil
}

// must is ask by Almanac's own user, without failure.
func must(t *testing.T, c *embedded.ClickHouse, sql string) string {
	t.Helper()
	got, err := ask(t, c.HTTPURL(), c.User(), c.Password(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

// One engine through its whole life: born, killed, back, stopped, born again from the same directory.
func TestClickHouseLife(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "clickhouse <&> data") // the name must survive XML
	c := newEngine(t, dir)
	stop := embeddedtest.Run(t, c)
	if c.Version() == "" || c.Database() != embedded.DefaultDatabase {
		t.Errorf("version %q, database %q", c.Version(), c.Database())
	}
	must(t, c, "CREATE TABLE almanac.t (n UInt64) ENGINE = MergeTree ORDER BY n")
	must(t, c, "INSERT INTO almanac.t SELECT number FROM numbers(1000)")
	for question, want := range map[string]string{
		"SELECT engine FROM system.databases WHERE name = 'almanac'":                                             "Atomic",
		"SELECT value FROM system.merge_tree_settings WHERE name = 'old_parts_lifetime'":                         "480",
		"SELECT value FROM system.merge_tree_settings WHERE name = 'non_replicated_deduplication_window'":        "10000",
		"SELECT value FROM system.merge_tree_settings WHERE name = 'fsync_after_insert'":                         "1",
		"SELECT value FROM system.settings WHERE name = 'async_insert'":                                          "0",
		"SELECT value FROM system.settings WHERE name = 'implicit_select'":                                       "0",
		"SELECT value != '0' FROM system.server_settings WHERE name = 'max_server_memory_usage'":                 "1",
		"SELECT toUInt64(value) <= 256 * 1024 * 1024 FROM system.server_settings WHERE name = 'mark_cache_size'": "1",
	} {
		if got := must(t, c, question); got != want {
			t.Errorf("%s = %q, want %q", question, got, want)
		}
	}

	address, password, first := c.HTTPURL()+" "+c.TCPAddr(), c.Password(), c.PID()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Eventually(t, soon, func() error {
		if pid := c.PID(); pid == 0 || pid == first {
			return fmt.Errorf("the engine's process is %d, was %d", pid, first)
		}
		return c.Healthy(t.Context())
	})
	if now := c.HTTPURL() + " " + c.TCPAddr(); now != address {
		t.Errorf("moved from %s to %s", address, now)
	}
	if got := must(t, c, "SELECT count() FROM almanac.t"); got != "1000" {
		t.Errorf("%s rows after the kill, want 1000", got)
	}

	last := c.PID()
	stop()
	if err := syscall.Kill(last, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the engine's process %d outlived the stop: %v", last, err)
	}
	if err := c.Healthy(t.Context()); !errors.Is(err, embedded.ErrNotRunning) {
		t.Errorf("Healthy after the stop = %v, want ErrNotRunning", err)
	}

	again := newEngine(t, dir)
	embeddedtest.Run(t, again)
	if again.Password() != password {
		t.Error("the password changed over a restart")
	}
	if got := must(t, again, "SELECT count() FROM almanac.t"); got != "1000" {
		t.Errorf("%s rows after the stop, want 1000", got)
	}
}

func TestClickHouseNativeProtocol(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	db := s.SQL()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO t SELECT number FROM numbers(10)"); err != nil {
		t.Fatal(err)
	}
	opts, err := ch.ParseDSN(s.ReaderDSN)
	if err != nil {
		t.Fatal(err)
	}
	reader := ch.OpenDB(opts)
	defer func() { _ = reader.Close() }()
	var sum uint64
	if err := reader.QueryRowContext(t.Context(), "SELECT sum(n) FROM t").Scan(&sum); err != nil {
		t.Fatal(err)
	}
	if sum != 45 {
		t.Errorf("sum = %d, want 45", sum)
	}
}

func TestClickHousePortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{
		Engine: embedded.Engine{Kind: embedded.EngineLibrary, Path: "never loaded"}, Dir: t.TempDir(), HTTPPort: port,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(t.Context())
	if !errors.Is(err, embedded.ErrPortInUse) || !strings.Contains(err.Error(), fmt.Sprint(port)) {
		t.Errorf("Run = %v, want ErrPortInUse naming %d", err, port)
	}
}

// An engine that ends at once is reported with its own words, and its directory is let go.
func TestClickHouseThatDoesNotStart(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "clickhouse")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"no luck with $1\" >&2\nexit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 {
		c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{
			Engine: embedded.Engine{Kind: embedded.EngineBinary, Path: program}, Dir: dir,
		})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Run(t.Context())
		if !errors.Is(err, embedded.ErrStart) || !strings.Contains(err.Error(), "no luck with server") ||
			!strings.Contains(err.Error(), "exit status 7") {
			t.Errorf("Run = %v, want ErrStart with the program's words", err)
		}
	}
}

// A parent that is killed takes its engine with it, and the next one starts on the same directory at once.
func TestClickHouseEndsWithItsParent(t *testing.T) {
	t.Parallel()
	embeddedtest.FindEngine(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), parentEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscanf(line, "ready: %d", &pid); err != nil {
		t.Fatalf("the parent said %q: %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as asked
	next := newEngine(t, dir)
	embeddedtest.Run(t, next)
	embeddedtest.Eventually(t, soon, func() error {
		if state := processState(pid); state != "" && state != "Z" { // a zombie waits for init, it holds nothing
			return fmt.Errorf("the engine %d of the killed parent is in state %s", pid, state)
		}
		return nil
	})
}

// processState is the letter of /proc, or "" when there is no such process.
func processState(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return after[:1]
}

// An engine elsewhere is only spoken to.
func TestClickHouseRemote(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	u, err := url.Parse(s.ClickHouseHTTP)
	if err != nil {
		t.Fatal(err)
	}
	dsns := map[string]string{
		"native": s.DSN + "?http_port=" + u.Port(),
		"http":   "http://" + url.UserPassword(s.User, s.Password).String() + "@" + u.Host + "/" + s.Database,
	}
	for name, dsn := range dsns {
		engine, err := embedded.Find(t.Context(), dsn, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: engine})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		embeddedtest.Run(t, c)
		if c.HTTPURL() != s.ClickHouseHTTP || c.Database() != s.Database || c.Password() != s.Password || c.PID() != 0 {
			t.Errorf("%s: %s %s %d", name, c.HTTPURL(), c.Database(), c.PID())
		}
		opts, err := ch.ParseDSN(c.DSN())
		if err != nil {
			t.Fatal(err)
		}
		db := ch.OpenDB(opts)
		var got string
		if err := db.QueryRowContext(t.Context(), "SELECT currentDatabase()").Scan(&got); err != nil || got != s.Database {
			t.Errorf("%s: database %q, %v", name, got, err)
		}
		_ = db.Close()
	}
}
