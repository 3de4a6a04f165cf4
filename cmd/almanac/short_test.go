package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// Sql waits for what its statement names while that is being stored,
// and an answer that lacks some of it exits 3.
func TestShortAnswersExit3(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t)
	b := newBox(t, "ALMANAC_NATS="+s.NATSURL, "ALMANAC_CLICKHOUSE="+s.HTTPDSN(), "ALMANAC_LOG_FORMAT=json")
	b.write("almanac.yaml", "topics: [{name: app}, {name: auth}]")
	b.background("router", "--events-bytes", "1GiB", "--shards-bytes", "1GiB").says("ready")
	sink := b.background("sink")
	sink.says(`"message":"ready"`)
	b.ok(lines(10), "send", "auth")
	b.ok(lines(10), "send", "app")
	for _, topic := range []string{"auth", "app"} {
		embeddedtest.Eventually(t, maxWait, func() error { // a new sink takes a while to lease its shards
			if got := b.run("", "sql", "SELECT count() AS n FROM "+topic).out; got != `{"n":10}`+"\n" {
				return errors.New(got)
			}
			return nil
		})
	}
	if code := sink.stop(syscall.SIGTERM); code != exitOK {
		t.Fatalf("sink: exit %d", code)
	}
	b.ok(lines(7), "send", "app")
	r := b.run("", "sql", "--wait", "1s", "SELECT count() AS n FROM app")
	if r.code != exitPartial || strings.TrimSpace(r.out) != `{"n":10}` {
		t.Errorf("a short answer: exit %d, want %d: %s", r.code, exitPartial, r.out)
	}
	contains(t, r.err, "the answer is short", "events of app", "almanac doctor")
	// What it does not name is not waited for.
	for _, sql := range []string{"SELECT count() FROM auth", "SELECT 1", "SELECT name FROM system.tables"} {
		if r := b.run("", "sql", "--wait", "1h", sql); r.code != exitOK || strings.Contains(r.err, "short") {
			t.Errorf("%s: exit %d, %s", sql, r.code, r.err)
		}
	}
}

// Events of many months, each a shard, are all in the answer at once.
func TestManyMonthsAreWhole(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok(manyMonths(60, 4), "send", "app", "--format", "ndjson")
	r := b.run("", "sql", "--wait", halfWait(), "SELECT count() AS n, uniqExact(month) AS m FROM app")
	if r.code != exitOK || strings.TrimSpace(r.out) != `{"n":240,"m":60}` {
		t.Errorf("exit %d, want 240 events of 60 months: %s%s", r.code, r.out, r.err)
	}
}
