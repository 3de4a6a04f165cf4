package embedded_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// secretEnv is in the environment of this process, as the key of personal data is in that of `up`.
const secretEnv = "ALMANAC_TEST_SECRET"

// confined skips a test where the kernel cannot hold the engine to its files.
func confined(t *testing.T) {
	t.Helper()
	if !embedded.Confines() {
		t.Skip("this kernel has no Landlock of Linux 5.19 or later: the engine may read every file of its user")
	}
}

// Any account runs any statement that reads a file by any way: nothing of a secret comes out.
func TestEngineReadsNoFilesOfOthers(t *testing.T) {
	t.Parallel()
	confined(t)
	dir := filepath.Join(t.TempDir(), "clickhouse")
	c := newEngine(t, dir)
	embeddedtest.Run(t, c)
	secret := "secret-" + strings.Repeat("x", 20)
	file := filepath.Join(filepath.Dir(dir), "key")
	writeText(t, file, secret)
	link := filepath.Join(dir, "data", "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	private := []string{secret, c.Password(), c.ReaderPassword(), os.Getenv(secretEnv)}
	paths := []string{
		file, link, "/etc/passwd", "/etc/hosts", filepath.Join(dir, "passwords.json"), filepath.Join(dir, "data", "..", "passwords.json"),
		filepath.Join(dir, "engine.log"), filepath.Join(dir, "engine.lock"), "passwords.json", "../passwords.json",
		"/proc/self/environ", "/proc/self/cmdline", "/proc/self/root" + file, "/proc/self/cwd/../passwords.json", "/proc/self/mem",
		fmt.Sprintf("/proc/%d/environ", os.Getpid()), fmt.Sprintf("/proc/%d/task/%d/environ", os.Getpid(), os.Getpid()),
		fmt.Sprintf("/proc/%d/root%s", os.Getpid(), file), fmt.Sprintf("/proc/%d/cwd", os.Getpid()),
	}
	accounts := map[string]string{embedded.UserAlmanac: c.Password(), embedded.UserReader: c.ReaderPassword(), "default": ""}
	for user, password := range accounts {
		ways := map[string]func(string) string{
			"HTTP":   func(sql string) string { return byHTTP(t, c, user, password, sql) },
			"native": native(t, c, user, password),
		}
		for way, run := range ways {
			for i, path := range paths {
				statements := readers(path)
				if i > 0 { // the first is the plain one; of the others the two that read any path
					statements = statements[:2]
				}
				for _, sql := range statements {
					got := run(sql)
					for _, s := range private {
						if strings.Contains(got, s) || strings.Contains(got, "root:") {
							t.Errorf("%s by %s, %s: %q", sql, user, way, got)
						}
					}
				}
			}
		}
	}
	if _, err := os.Stat(file + ".out"); err == nil {
		t.Errorf("a statement wrote %s.out", file)
	}
	if got, err := ask(t, c.HTTPURL(), embedded.UserReader, c.ReaderPassword(), "SELECT file('"+file+"')"); err == nil || !strings.Contains(err.Error(), "errno: 13") {
		t.Errorf("the kernel is to refuse a file that is there: %q, %v", got, err)
	}
}

// byHTTP is what a client hears by HTTP, answer or refusal.
func byHTTP(t *testing.T, c *embedded.ClickHouse, user, password, sql string) string {
	t.Helper()
	got, err := ask(t, c.HTTPURL(), user, password, sql)
	return got + fmt.Sprint(err)
}

// native is the same by the native protocol, over one connection.
func native(t *testing.T, c *embedded.ClickHouse, user, password string) func(sql string) string {
	t.Helper()
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(user, password), Host: c.TCPAddr()}
	opts, err := ch.ParseDSN(u.String())
	if err != nil {
		t.Fatal(err)
	}
	db := ch.OpenDB(opts)
	t.Cleanup(func() { _ = db.Close() })
	return func(sql string) string {
		rows, err := db.QueryContext(t.Context(), sql)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = rows.Close() }()
		var all strings.Builder
		for rows.Next() {
			var value string
			if err := rows.Scan(&value); err != nil {
				return all.String() + err.Error()
			}
			all.WriteString(value)
		}
		return all.String() + fmt.Sprint(rows.Err())
	}
}

// readers are the ways in which a statement reads or writes a file that it names.
func readers(path string) []string {
	return []string{
		"SELECT file('" + path + "')",
		"SELECT 1 FORMAT Template SETTINGS format_template_row = '" + path + "'",
		"SELECT file('" + path + "', 'nothing')",
		"SELECT * FROM file('" + path + "', 'LineAsString')",
		"SELECT * FROM '" + path + "'",
		"SELECT 1 FORMAT Template SETTINGS format_template_resultset = '" + path + "'",
		"SELECT 1 AS a FORMAT Protobuf SETTINGS format_schema = '" + path + ":Message'",
		"SELECT 1 AS a FORMAT CapnProto SETTINGS format_schema = '" + path + ":Message'",
		"SELECT 1 INTO OUTFILE '" + path + ".out' FORMAT TSV",
		"DESCRIBE TABLE file('" + path + "')",
		"SELECT * FROM filesystem('" + path + "')",
	}
}

// What the engine's process was given: no variable, no open file of its parent, no right to what it does not need.
func TestEngineGetsNothingOfItsParent(t *testing.T) {
	t.Parallel()
	confined(t)
	dir := filepath.Join(t.TempDir(), "clickhouse")
	outside, err := os.Create(filepath.Join(t.TempDir(), "outside"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outside.Close() }()
	leak := inheritable(t, outside)
	c := newEngine(t, dir)
	embeddedtest.Run(t, c)
	proc := fmt.Sprintf("/proc/%d/", c.PID())
	environ, err := os.ReadFile(proc + "environ")
	if err != nil {
		t.Fatal(err)
	}
	for v := range strings.SplitSeq(strings.TrimRight(string(environ), "\x00"), "\x00") {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "PATH", "HOME", "LANG", "TZ", "ALMANAC_ENGINE_CHILD":
		default:
			t.Errorf("the engine's environment has %s", name)
		}
	}
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, err := os.Readlink(proc + "fd/" + fd.Name())
		if err == nil && to == leak {
			t.Errorf("the engine holds %s of its parent open", to)
		}
	}
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status), "NoNewPrivs:\t1") {
		t.Error("the engine could gain rights by executing a program")
	}
	limits, err := os.ReadFile(proc + "limits")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(limits)) {
		if f := strings.Fields(line); strings.HasPrefix(line, "Max core file size") && (f[4] > "1" || f[5] > "1") {
			t.Errorf("the engine may write dumps of its memory: %s", line)
		}
	}
}

// The engine listens on its two ports and connects to none, whatever account asks.
func TestEngineConnectsNowhere(t *testing.T) {
	t.Parallel()
	confined(t)
	s := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	for _, sql := range []string{
		"SELECT * FROM url('" + s.ClickHouseHTTP + "/ping', 'LineAsString') SETTINGS http_max_tries = 1",
		"SELECT * FROM remote('" + s.ClickHouseTCP + "', 'system.one', 'almanac', '" + s.Password + "') SETTINGS connections_with_failover_max_tries = 1",
	} {
		got, err := ask(t, s.ClickHouseHTTP, s.User, s.Password, sql)
		if err == nil {
			t.Errorf("%s = %q", sql, got)
		} else if !strings.Contains(err.Error(), "ermission denied") {
			t.Errorf("%s: %v, want it refused by the kernel", sql, err)
		}
	}
}
