package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// The first send with --full spool needs no server where any send
// was before.
func TestFirstSpoolWithoutServer(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up()
	b.ok(lines(10), "send", "app")
	if code := up.stop(syscall.SIGTERM); code != exitOK {
		t.Fatalf("up: exit %d", code)
	}
	r := b.run(lines(20), "send", "app", "--full", "spool", "--timeout", "1s")
	if r.code != exitPartial {
		t.Fatalf("exit %d, want %d: %s", r.code, exitPartial, r.err)
	}
	contains(t, r.err, "20 in the spool")
	b.up()
	contains(t, b.run("", "send", "app", "--full", "spool").err, "20 of earlier sends stored from the spool")
	b.inTheEnd(30)
	// A descriptor that is there stays as it is.
	path := filepath.Join(b.data(), "spool", "app", "topic.json")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b.ok("", "topics", "apply", "app", "--field", "a:int64")
	b.ok(lines(1), "send", "app")
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("it was overwritten: %v", err)
	}
}

// An id is a name and not a key. What is sent twice under one id is
// stored, counted and proven twice; pages show one of those that have one time.
func TestAnIDSentTwice(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	const line = `{"id":"0193a1b2-0000-7000-8000-000000000001","ts":"2026-11-01T10:00:00Z","message":"twice"}` + "\n"
	b.ok(line+line+strings.Replace(line, "10:00:00", "11:00:00", 1), "send", "app", "--format", "ndjson")
	b.publish("events.app.2026-11.0", line)
	if rep := b.inTheEnd(4); rep.Stored != 4 || rep.Doubled != 0 || rep.Missing != 0 {
		t.Errorf("%+v", rep)
	}
	if n := strings.Count(b.ok("", "query", "app", "-o", "ndjson"), "\n"); n != 2 {
		t.Errorf("query shows %d events, want one for each time", n)
	}
	if n := strings.TrimSpace(b.ok("", "query", "app", "--count", "-o", "table")); n != "4" {
		t.Errorf("%s events are counted, want 4", n)
	}
	if got := strings.TrimSpace(b.ok("", "sql", "SELECT count() AS n, uniqExact(id) AS ids FROM app")); got != `{"n":4,"ids":1}` {
		t.Error(got)
	}
}

// Verify's table adds up with what was dropped of dead letters.
func TestVerifyShowsDiscarded(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok(lines(3), "send", "app")
	b.publish("events.app.2026-11.0", "{not json")
	b.inTheEnd(4)
	b.ok("", "dead", "drop", "app", "--yes")
	r := b.run("", "verify")
	if r.code != exitOK {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.out, "DISCARDED")
	contains(t, r.err, "discarded with its dead letter")
}

// No message shows a password.
func TestNoPasswordIsShown(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"nats://me:hush@127.0.0.1:1", "nats://hush@127.0.0.1:1", "nats://me:hush\x7f@127.0.0.1:1", "nats://me:hush@127.0.0.1:1,nats://me:hush@127.0.0.1:2"} {
		for _, args := range [][]string{
			{"send", "app"}, {"send", "app", "--full", "spool"}, {"topics", "ls"}, {"query", "app"}, {"doctor"},
			{"query", "app", "--clickhouse", "http://me:hush@127.0.0.1:1/x"}, {"doctor", "--clickhouse", "http://me:hush@127.0.0.1:1/x"},
			{"query", "app", "--clickhouse", "http://me:hush\x7f@127.0.0.1:1/x"}, {"config", "check"}, {"config", "show"},
		} {
			r := newBox(t).run("x\n", append(args, "--nats", address)...)
			if strings.Contains(r.out+r.err, "hush") {
				t.Errorf("%q %q:\n%s%s", args, address, r.out, r.err)
			}
		}
	}
}

// connect connects to the up's NATS, as another program would.
func (b *box) connect() *nats.Conn {
	b.t.Helper()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		b.t.Fatal(err)
	}
	nc, err := nats.Connect(a.NATSLogin(), nats.Timeout(maxWait))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	return nc
}

// publish puts a message into the up's NATS.
func (b *box) publish(subject, text string) {
	b.t.Helper()
	if _, err := b.connect().Request(subject, []byte(text), maxWait); err != nil {
		b.t.Fatal(err)
	}
}

// Config check says which options help, where the streams do not fit
// the store of the NATS that is named, or the disk; and leaves nothing there.
func TestConfigCheckOfAStoreTooSmall(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 30, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(maxWait) {
		t.Fatal("NATS did not start")
	}
	helps := []string{"too small", "--events-bytes", "--shards-bytes", "events_bytes, shards_bytes"}
	url := []string{"--nats", srv.ClientURL()}
	check := func(code int, says []string, args ...string) {
		t.Helper()
		r := b.run("", append([]string{"config", "check"}, args...)...)
		if r.code != code {
			t.Errorf("%v: exit %d, want %d", args, r.code, code)
		}
		contains(t, r.err, says...)
	}
	check(exitConfig, append(helps, "max_file_store", "EVENTS, SHARDS, DOCS, TIMERS, KV_registry, KV_copies together"), url...)
	fit := []string{"--events-bytes", "200MiB", "--shards-bytes", "500MiB"}
	check(exitOK, []string{"are good"}, append(fit, url...)...)
	check(exitConfig, helps, append([]string{"--events-bytes", "200MiB", "--shards-bytes", "900MiB"}, url...)...)

	_, js := embeddedtest.Dial(t, srv.ClientURL())
	account, err := js.AccountInfo(t.Context())
	if err != nil || account.Streams != 0 || account.Store != 0 {
		t.Errorf("the check left %+v (%v)", account, err)
	}
	// What the check called good is: a router starts, and then there is nothing more to check.
	router := b.background(append([]string{"router", "--log-format", "json"}, append(fit, url...)...)...)
	router.says("ready")
	router.stop(syscall.SIGTERM)
	check(exitOK, []string{"are good"}, url...)

	// A server that does not answer is not a fault of the settings.
	check(exitOK, []string{"not checked", "are good"}, "--nats", "nats://127.0.0.1:1")
	// The disk of the data directory, where up would put the streams.
	check(exitConfig, append(helps, b.data()), "--events-bytes", "1000000GiB")
}
