package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// One month of a topic is restored alone, and proven. What was erased since the backup goes from it. A topic of which a month alone cannot be, and a
// month that is not there, are refused before anything is restored.
func TestRestoreOneMonth(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok("", "topics", "apply", "customers", "--kind", "document")
	b.ok(`{"n":1}`, "docs", "put", "customers", "c")
	var events strings.Builder
	for month := 1; month <= 3; month++ {
		for n := range 30 * month {
			fmt.Fprintf(&events, `{"ts":"2026-%02d-10T00:00:%02dZ","user_id":"p-%d","message":"%d-%d"}`+"\n", month, n%60, n%3, month, n)
		}
	}
	b.ok(events.String(), "send", "app", "--format", "ndjson")
	b.inTheEnd(180)
	dest := filepath.Join(b.dir, "backups")
	b.ok("", "backup", dest)
	b.ok("", "erase", "app", "--user", "p-1", "--yes")
	into := filepath.Join(t.TempDir(), "month")
	restore := func(args ...string) result {
		return b.run("", append([]string{"restore", dest, "--ledger", b.data(), "--data", into}, args...)...)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--month", "2026-02"}, "topic customers is of kind document"},
		{[]string{"--month", "2026-02", "--topic", "customers"}, "topic customers is of kind document"},
		{[]string{"--month", "2026-07", "--topic", "app"}, "the backup has 2026-01, 2026-02, 2026-03"},
		{[]string{"--month", "202602", "--topic", "app"}, "--month"},
		{[]string{"--month", "2026-02", "--topic", "app", "--nats", "nats://127.0.0.1:1", "--clickhouse", "http://127.0.0.1:1/x"}, "into a data directory"},
	} {
		if r := restore(c.args...); r.code != exitUsage || !strings.Contains(r.err, c.want) {
			t.Errorf("%v: exit %d, %s", c.args, r.code, r.err)
		}
	}
	r := restore("--month", "2026-02", "--topic", "app")
	if r.code != exitOK {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	contains(t, r.err, "of month 2026-02 alone", "proven: ", "carried out")
	there := &box{t: t, dir: b.dir, env: append(append([]string(nil), b.env...), envPrefix+"DATA="+into)}
	there.up()
	for question, want := range map[string]string{
		"SELECT count() AS n FROM app":                              `{"n":40}`,
		"SELECT count() AS n FROM app WHERE user_id = 'p-1'":        `{"n":0}`,
		"SELECT count() AS n FROM app WHERE NOT message LIKE '2-%'": `{"n":0}`,
	} {
		if got := strings.TrimSpace(there.ok("", "sql", question)); got != want {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
	}
	if n := strings.TrimSpace(there.ok("", "query", "app", "--count", "-o", "table")); n != "40" {
		t.Errorf("%s events are found", n)
	}
	there.ok("", "verify")
}
