package main

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A NATS that is named alone is used or refused by every verb there is,
// beside an up whose own it is not. New verbs are in the walk by themselves.
func TestEveryVerbTakesANamedNATS(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok(lines(1), "send", "app")
	b.inTheEnd(1)
	before := b.ok("", "topics", "ls", "-o", "json")
	away := embeddedtest.FreeAddress(t)
	t.Run("verbs", func(t *testing.T) {
		for words, c := range verbs(t) {
			if serverless[words] || strings.HasPrefix(words, "completion ") {
				continue
			}
			t.Run(words, func(t *testing.T) {
				t.Parallel()
				r := inProcess(t, append(withArguments(words, c, "app"), "--data", b.data(), "--nats", "nats://"+away)...)
				if r.code == exitOK || !strings.Contains(r.out+r.err, away) {
					t.Errorf("exit %d, and %s is not named:\n%s%s", r.code, away, r.out, r.err)
				}
			})
		}
		for _, words := range []string{"router", "sink", "gateway", "timers run"} { // they wait for their servers
			args := append(strings.Fields(words), "--log-format", "json", "--nats", "nats://"+away, "--clickhouse", "http://"+away+"/almanac")
			b.background(args...).says(away)
		}
	})
	if after := b.ok("", "topics", "ls", "-o", "json"); after != before {
		t.Errorf("the topics were\n%s\nand are\n%s", before, after)
	}
	if n := strings.TrimSpace(b.ok("", "query", "app", "--count", "-o", "table")); n != "1" {
		t.Errorf("app has %s events, want 1", n)
	}
	for _, flag := range []string{"--nats", "--clickhouse"} {
		r := b.run("x\n", "send", "app", "--to", "http://127.0.0.1:1", flag, "nats://"+away)
		if r.code != exitUsage {
			t.Errorf("send --to with %s: exit %d", flag, r.code)
		}
		contains(t, r.err, flag, "--to", "leave one of the two out")
	}

	// What removes something of a front, or publishes bills, says where before it does.
	b.ok("", "topics", "apply", "customers", "--kind", "document")
	b.ok("", "topics", "apply", "bytes", "--kind", "meter")
	b.ok("", "timers", "groups", "apply", "mails")
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{
		"docs rm customers none", "timers rm mails none", "usage close bytes --month 2026-01 --into app", "usage corrections bytes --month 2026-01 --into app",
	} {
		r := b.run("", strings.Fields(call)...)
		first, _, _ := strings.Cut(r.err, "\n")
		if !strings.HasPrefix(first, "on NATS "+strings.TrimPrefix(a.NATS, "nats://")) || !strings.Contains(first, b.data()) {
			t.Errorf("%s: the first line is %q", call, first)
		}
	}
}
