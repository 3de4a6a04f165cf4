package embedded_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A native client that hung up in the middle of an answer, or sent
// what is not a packet, ended the engine library, which took SQL away from everybody.
func TestEngineOutlivesRudeClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	engine := newEngine(t, dir)
	embeddedtest.Run(t, engine)
	t.Cleanup(func() {
		if text, err := os.ReadFile(filepath.Join(dir, "engine.log")); err == nil && t.Failed() {
			t.Logf("engine.log: %s", text)
		}
	})
	pid := engine.PID()
	native := func(words string) {
		conn, err := net.Dial("tcp", engine.TCPAddr())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write([]byte(words)); err != nil {
			t.Fatal(err)
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing resets it
		}
	}
	survives := func(what string) {
		t.Helper()
		embeddedtest.Eventually(t, soon, func() error { return engine.Healthy(t.Context()) })
		if now := engine.PID(); now != pid {
			t.Fatalf("the engine was started again after %s", what)
		}
	}
	for range 20 {
		native("")
		native("GET / HTTP/1.1\r\n\r\n")
		native(strings.Repeat("\xff", 64))
	}
	survives("malformed packets")

	// A reader that hangs up while its answer is being written.
	for range 5 {
		conn, hangUp := dialCut(t, engine.ReaderDSN())
		rows, err := conn.QueryContext(t.Context(), "SELECT number, repeat('x', 1000) FROM numbers(100000)")
		if err != nil {
			t.Fatal(err)
		}
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		hangUp()
		_ = rows.Close()
		_ = conn.Close()
	}
	survives("readers that hung up")
	for range 5 { // the same by HTTP
		conn, err := net.Dial("tcp", strings.TrimPrefix(engine.HTTPURL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		q := "SELECT number, repeat('x', 1000) FROM numbers(100000) FORMAT TSV"
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: engine\r\nX-ClickHouse-User: reader\r\nX-ClickHouse-Key: %s\r\nContent-Length: %d\r\n\r\n%s", engine.ReaderPassword(), len(q), q)
		_, _ = conn.Read(make([]byte, 1000))
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	survives("HTTP clients that hung up")
	if text, err := os.ReadFile(filepath.Join(dir, "engine.log")); err != nil || !strings.Contains(string(text), "<Error>") {
		t.Errorf("engine.log reports nothing of the clients' errors (%v): %.300s", err, text)
	}
}

// dialCut opens a DSN; hangUp resets all of its connections.
func dialCut(t *testing.T, dsn string) (db *sql.DB, hangUp func()) {
	t.Helper()
	opts, err := ch.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan *net.TCPConn, 16)
	opts.DialContext = func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			conns <- tcp
		}
		return c, err
	}
	return ch.OpenDB(opts), func() {
		for len(conns) > 0 {
			c := <-conns
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	}
}
