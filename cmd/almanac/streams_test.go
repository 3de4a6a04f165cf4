package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// TestStreams gives streams of a running Almanac more room, by the verb that doctor and refusals name and by settings: a
// group fills TIMERS, doctor names it and what to do, and what it says is done as it says it.
func TestStreams(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	bounds := func() map[string]streamRow {
		t.Helper()
		out := map[string]streamRow{}
		for _, r := range decoded[[]streamRow](b, "streams", "ls", "-o", "json") {
			out[r.Stream] = r
		}
		return out
	}
	up := b.up("--events-bytes", "256MiB", "--shards-bytes", "512MiB", "--docs-bytes", "64MiB", "--timers-bytes", "8MiB")
	if got := bounds(); got["TIMERS"].Bound != 8<<20 || got["DOCS"].Bound != 64<<20 || got["EVENTS"].Bound != 256<<20 || got["REGISTRY"].Bound == 0 {
		t.Errorf("bounds as they were said: %+v", got)
	}
	b.ok("", "timers", "groups", "apply", "mails")
	var lines strings.Builder
	later := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	for i := range 1500 {
		_, _ = fmt.Fprintf(&lines, `{"id":"t%d","execute_at":%q,"callback_url":"http://127.0.0.1:1/","payload":%q}`+"\n", i, later, strings.Repeat("x", 4000))
	}
	refused := func(says string) { // one that was not answered in time is run again
		t.Helper()
		embeddedtest.Eventually(t, maxWait, func() error {
			if r := b.run(lines.String(), "timers", "import", "mails"); r.code == 0 || !strings.Contains(r.out+r.err, says) {
				return fmt.Errorf("6 MB of timers in 8 MiB: exit %d, %s %.1000s", r.code, r.out, r.err)
			}
			return nil
		})
	}
	refused("may hold as much as is free")
	full := bounds()["TIMERS"]
	if len(full.HeldBy) != 1 || full.HeldBy[0].Group != "mails" || full.HeldBy[0].Bytes < 1<<20 {
		t.Errorf("who holds it: %+v", full)
	}
	b.ok("", "timers", "groups", "apply", "mails", "--max-bytes", "1GiB") // its share is what it is given
	refused("almanac streams apply TIMERS --bytes")
	said := b.diagnosed(anyCode, "group mails holds the most of TIMERS", "almanac streams apply TIMERS --bytes 16MiB")
	if strings.Contains(said, "nats stream") {
		t.Errorf("doctor names a program that is not shipped: %s", said)
	}
	contains(t, b.ok("", "streams", "resize", "timers", "--bytes", "64MiB"), "64 MiB")
	embeddedtest.Eventually(t, maxWait, func() error {
		if r := b.run(lines.String(), "timers", "import", "mails"); r.code != 0 {
			return fmt.Errorf("with twice the room: exit %d, %s %.1000s", r.code, r.out, r.err)
		}
		return nil
	})
	if r := b.run("", "streams", "apply", "REGISTRY", "--bytes", "256MiB"); r.code == 0 || !strings.Contains(r.err, "almanac streams apply") {
		t.Errorf("more than the server may store: exit %d, %s", r.code, r.err)
	}
	b.ok("", "streams", "apply", "SHARDS", "--bytes", "128MiB") // as that says
	b.ok("", "streams", "apply", "REGISTRY", "--bytes", "256MiB")
	if r := b.run("", "streams", "apply", "TIMRS", "--bytes", "16MiB"); r.code != exitUsage || !strings.Contains(r.err, "TIMERS") {
		t.Errorf("a stream that is not: exit %d, %s", r.code, r.err)
	}
	for args, says := range map[string]string{
		"":                          "--bytes 4GiB",
		"--replicas 2":              "1, 3 or 5",
		"EVENTS --replicas 3":       "this NATS server is alone",
		"--replicas 3":              "this NATS server is alone",
		"--replicas 3 --bytes 1GiB": "one at a time",
		"EVENTS --bytes 1k":         "1MiB or more",
	} {
		if r := b.run("", append([]string{"streams", "apply"}, strings.Fields(args)...)...); r.code == exitOK || !strings.Contains(r.err, says) {
			t.Errorf("streams apply %s: exit %d, %s", args, r.code, r.err)
		}
	}
	if r := decoded[[]streamRow](b, "streams", "apply", "--replicas", "1", "-o", "json"); len(r) == 0 || r[0].Copies != 1 || r[0].Replicas != 1 {
		t.Errorf("copies of what is alone: %+v", r)
	}
	if code := up.stop(syscall.SIGTERM); code != exitOK {
		t.Fatalf("up: exit %d", code)
	}
	up = b.up("--timers-bytes", "24MiB")
	if got := bounds(); got["TIMERS"].Bound != 24<<20 || got["DOCS"].Bound != 64<<20 || got["REGISTRY"].Bound != 256<<20 {
		t.Errorf("after a start that said TIMERS alone: %+v", got)
	}
	up.stop(syscall.SIGTERM)
}
