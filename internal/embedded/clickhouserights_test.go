package embedded_test

import (
	"context"

	"fmt"

	"net"
	"net/http"

	"strconv"
	"strings"
	"sync"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
	"testing"
)

// What people's SQL may do, and the much longer list of what it may not.
func TestReaderRights(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	must(t, s.Engine, "CREATE TABLE "+s.Database+".t (n UInt64) ENGINE = MergeTree ORDER BY n")
	must(t, s.Engine, "INSERT INTO "+s.Database+".t VALUES (1), (2)")
	must(t, s.Engine, "CREATE TABLE IF NOT EXISTS default.secret (n UInt64) ENGINE = MergeTree ORDER BY n")
	hidden := s.Engine.Database() + "." + schemas.TableLedger
	must(t, s.Engine, "CREATE TABLE IF NOT EXISTS "+hidden+" (n UInt64) ENGINE = MergeTree ORDER BY n")
	must(t, s.Engine, "CREATE TABLE IF NOT EXISTS "+s.Engine.Database()+".shown_to_readers (n UInt64) ENGINE = MergeTree ORDER BY n")
	as := func(sql string) (string, error) {
		return ask(t, s.ClickHouseHTTP, embedded.UserReader, s.Engine.ReaderPassword(), sql)
	}
	for sql, want := range map[string]string{
		"SELECT count() FROM " + s.Database + ".t":                             "2",
		"SELECT getSetting('max_execution_time')":                              "30",
		"SELECT 1 SETTINGS max_execution_time = 300":                           "1",
		"SELECT 1 SETTINGS max_threads = 2":                                    "1",
		"SELECT count() FROM system.parts WHERE database = 'default'":          "0",
		"SELECT count() FROM numbers(10)":                                      "10",
		"SELECT count() FROM " + s.Engine.Database() + ".shown_to_readers":     "0",
		"SELECT name FROM system.tables WHERE database = '" + s.Database + "'": "t",
	} {
		if got, err := as(sql); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", sql, got, err, want)
		}
	}
	for _, sql := range []string{
		"INSERT INTO " + s.Database + ".t VALUES (3)",
		"ALTER TABLE " + s.Database + ".t DELETE WHERE 1",
		"TRUNCATE TABLE " + s.Database + ".t",
		"DROP TABLE " + s.Database + ".t",
		"CREATE TABLE " + s.Database + ".u (n UInt64) ENGINE = Memory",
		"CREATE TEMPORARY TABLE u (n UInt64)",
		"SELECT * FROM default.secret",
		"SELECT count() FROM " + hidden,
		"SELECT * FROM system.users",
		"SELECT * FROM file('/etc/hostname', 'LineAsString')",
		"SELECT * FROM url('" + s.ClickHouseHTTP + "', 'LineAsString')",
		"SELECT * FROM remote('" + s.ClickHouseTCP + "', '" + s.Database + ".t')",
		"SELECT * FROM executable('cat', 'TSV', 'n String')",
		"SELECT 1 SETTINGS max_execution_time = 301",
		"SELECT 1 SETTINGS max_execution_time = 0",
		"SELECT 1 SETTINGS max_memory_usage = 0",
		"SELECT 1 SETTINGS max_result_rows = 0",
		"SELECT 1 SETTINGS max_memory_usage_for_user = 0",
		"SELECT 1 SETTINGS timeout_overflow_mode = 'break'",
		"SELECT 1 SETTINGS readonly = 0",
		"SELECT 1 SETTINGS http_response_headers = {'Content-Type': 'text/html'}",
		"SELECT 1 SETTINGS add_http_cors_header = 1",
		"SELECT 1 SETTINGS format_schema = 'a:B'",
		"SELECT 1 SETTINGS format_template_row_format = '<b>'",
		"SELECT number FROM numbers(1000001)",
		"SYSTEM STOP LISTEN HTTP",
		"SYSTEM STOP MERGES " + s.Database + ".t",
		"KILL QUERY WHERE 1",
		"CREATE USER x",
	} {
		if got, err := as(sql); err == nil {
			t.Errorf("the reader may %q: %q", sql, got)
		}
	}
	if _, err := ask(t, s.ClickHouseHTTP, embedded.UserReader, "wrong", "SELECT 1"); err == nil {
		t.Error("the reader came in with a wrong password")
	}
}

// The local mode's own user cannot have a password; it must be of no use to anybody.
func TestSessionUserIsPowerless(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	must(t, s.Engine, "CREATE TABLE "+s.Database+".t (n UInt64) ENGINE = MergeTree ORDER BY n")
	run := native(t, s.Engine, "default", "")
	for _, sql := range []string{
		"SELECT * FROM " + s.Database + ".t",
		"SHOW TABLES FROM " + s.Database,
		"INSERT INTO " + s.Database + ".t VALUES (3)",
		"CREATE DATABASE mine",
		"SYSTEM STOP LISTEN HTTP",
		"SYSTEM STOP LISTEN TCP",
		"SELECT * FROM file('/etc/hostname', 'LineAsString')",
		"SELECT 1 SETTINGS max_threads = 64",
		"SELECT 1 SETTINGS max_memory_usage = 0",
		"SELECT 1 SETTINGS max_concurrent_queries_for_user = 0",
		"SELECT 1 SETTINGS function_sleep_max_microseconds_per_block = 1",
	} {
		if got := run(sql); !strings.Contains(got, "Exception") && !strings.Contains(got, "code:") && got != "<nil>" {
			t.Errorf("default may %q: %q", sql, got)
		} else if got == "<nil>" && !strings.HasPrefix(sql, "SHOW") {
			t.Errorf("default may %q", sql)
		}
		if got, err := ask(t, s.ClickHouseHTTP, "default", "", sql); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("default came in by HTTP: %q, %v", got, err)
		}
	}
	if err := s.Engine.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// All who have no account take one place together of the engine's statements, however often they ask.
func TestStatementsWithoutAnAccountLeaveSpace(t *testing.T) {
	t.Parallel()
	c := newEngine(t, t.TempDir())
	embeddedtest.Run(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	refused := make(chan struct{}, 110)
	for range 110 {
		clients.Go(func() {
			opts, err := ch.ParseDSN("clickhouse://default@" + c.TCPAddr())
			if err != nil {
				t.Error(err)
				return
			}
			opts.DialTimeout, opts.ReadTimeout = soon, 10*soon
			db := ch.OpenDB(opts)
			defer func() { _ = db.Close() }()
			if _, err := db.ExecContext(ctx, "SELECT sleep(100000)"); err != nil && ctx.Err() == nil {
				refused <- struct{}{}
			}
		})
	}
	for range 100 {
		select {
		case <-refused:
		case <-t.Context().Done():
			t.Fatal("statements of default were not refused")
		}
	}
	if got := must(t, c, "SELECT count() FROM system.processes WHERE user = 'default'"); got != "0" && got != "1" {
		t.Errorf("default runs %s statements at once, want one", got)
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// Connections that say nothing, of a process of the same machine, leave room for those of Almanac.
func TestIdleConnectionsLeaveSpace(t *testing.T) {
	t.Parallel()
	c := embeddedtest.Start(t, embeddedtest.WithoutNATS()).Engine
	for range 700 {
		conn, err := net.Dial("tcp", c.TCPAddr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	// Once the engine has all of them, those that it does not take are closed.
	held := func() string { return must(t, c, "SELECT value FROM system.metrics WHERE metric = 'TCPConnection'") }
	embeddedtest.Eventually(t, soon, func() error {
		if got, err := strconv.Atoi(held()); err != nil || got < 700 {
			return fmt.Errorf("%d connections: %w", got, err)
		}
		return nil
	})
	http.DefaultClient.CloseIdleConnections()
	if got, err := ask(t, c.HTTPURL(), embedded.UserReader, c.ReaderPassword(), "SELECT 40 + 2"); err != nil || got != "42" {
		t.Errorf("a reader beside 700 idle connections: %q, %v", got, err)
	}
}
