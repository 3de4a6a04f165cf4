package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/embedded"
)

// Issue 13, line 10: the first send with --full spool needs no server where any send
// was before.
func TestLine10FirstSpoolWithoutServer(t *testing.T) {
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
	b.settled(30)
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

// Issue 13, line 12: verify's table adds up with what was dropped of dead letters.
func TestLine12VerifyShowsDiscarded(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok(lines(3), "send", "app")
	b.publish("events.app.2026-11.0", "{not json")
	b.settled(4)
	b.ok("", "dead", "drop", "app", "--yes")
	r := b.run("", "verify")
	if r.code != exitOK {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.out, "DISCARDED")
	contains(t, r.err, "discarded with its dead letter")
}

// The same line: no message shows a password.
func TestLine12NoPasswordIsShown(t *testing.T) {
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

// publish puts a message into the up's NATS, as another program would.
func (b *box) publish(subject, text string) {
	b.t.Helper()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		b.t.Fatal(err)
	}
	nc, err := nats.Connect(a.NATS)
	if err != nil {
		b.t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request(subject, []byte(text), patience); err != nil {
		b.t.Fatal(err)
	}
}
