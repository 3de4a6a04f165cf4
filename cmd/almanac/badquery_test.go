package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/query"
)

// Each bad request is its own client error, and none of them an empty page.
func TestBadQueries(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok("", "topics", "apply", "auth", "--field", "status:int64")
	b.ok(lines(20), "send", "app")
	page := decoded[query.Page](b, "query", "app", "--limit", "5", "--from", "-1h", "-o", "json")
	if len(page.Events) != 5 || page.Cursor == "" {
		t.Fatalf("%+v", page)
	}
	tampered := []byte(page.Cursor)
	tampered[40] ^= 1
	for _, c := range []struct {
		says string
		args []string
	}{
		{"1 to 1000", []string{"query", "app", "--limit", "0"}},
		{"1 to 1000", []string{"query", "app", "--limit", "1001"}},
		{"must lie before", []string{"query", "app", "--from", "2026-11-02", "--to", "2026-11-01"}},
		{"bad cursor", []string{"query", "app", "--cursor", string(tampered)}},
		{"not one of ours", []string{"query", "app", "--cursor", "x"}},
		{"with another filter", []string{"query", "app", "--cursor", page.Cursor, "--where", "level = 'error'"}},
		{"of another topic", []string{"query", "auth", "--cursor", page.Cursor}},
		{"in the other order", []string{"query", "app", "--cursor", page.Cursor, "--order", "asc"}},
		{"must lie before", []string{"query", "app", "--from", "2026-11-02", "--to", "2026-11-02"}},
		{"of another range of time", []string{"query", "app", "--cursor", page.Cursor, "--to", "2026-11-01"}},
		{"did you mean level?", []string{"query", "app", "--where", "levl = 'x'"}},
		{"did you mean message?", []string{"query", "app", "--fields", "ts,mesage"}},
		{"never closed", []string{"query", "app", "--where", "level = 'x"}},
		{"whole number", []string{"query", "auth", "--where", "status = 'x'"}},
		{"such as 1m", []string{"query", "app", "--histogram", "often"}},
		{"a step of", []string{"query", "app", "--from", "-1h", "--to", "now", "--histogram", "1s"}},
		{"level, service, type", []string{"query", "app", "--histogram", "1m", "--by", "message"}},
		{"it is for --histogram", []string{"query", "app", "--by", "level"}},
		{"not for counting", []string{"query", "app", "--count", "--cursor", page.Cursor}},
		{"take one of the two", []string{"query", "app", "--count", "--histogram", "1m"}},
		{"this is INSERT", []string{"sql", "INSERT INTO app (message) VALUES ('x')"}},
		{"almanac topics ls", []string{"sql", "SELECT count() FROM nosuch"}},
		{"DESCRIBE TABLE", []string{"sql", "SELECT nosuch FROM app"}},
		{"almanac sql --help", []string{"sql", "SELEC 1"}},
		{"Give --user, --where", []string{"erase", "app", "--dry-run"}},
		{"to 1000000x", []string{"replay", "app", "--speed", "fast"}},
		{"http, native or curl", []string{"sql", "--print-dsn=ftp"}},
	} {
		r := b.run("", c.args...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("%v: exit %d, want %d, stdout %q", c.args, r.code, exitUsage, r.out)
		}
		contains(t, r.err, c.says)
		if strings.Contains(r.err, "bad request") {
			t.Errorf("%v: the words of a sentinel are shown: %s", c.args, r.err)
		}
	}
	// In a value, SQL is only text.
	r := b.run("", "query", "app", "--where", `message = "'; DROP TABLE app; --"`, "-o", "json")
	if r.code != exitOK {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	contains(t, r.err, "notice: no index covers this filter", "Indexed are ts, user_id")
	if err := json.Unmarshal([]byte(r.out), &page); err != nil || len(page.Events) != 0 || page.Notice == "" {
		t.Errorf("%s: %v", r.out, err)
	}
	if got := strings.TrimSpace(b.ok("", "query", "app", "--count", "-o", "table")); got != "20" {
		t.Errorf("app has %s events, want 20", got)
	}
	// A cursor goes on where it was made, however far "an hour ago" moved since.
	next := decoded[query.Page](b, "query", "app", "--limit", "15", "--from", "-1h", "-o", "json")
	rest := decoded[query.Page](b, "query", "app", "--limit", "15", "--from", "-1h", "-o", "json", "--cursor", pageCursor(b))
	if len(next.Events) != 15 || len(rest.Events) != 15 || rest.Cursor != "" || string(rest.Events[14]) == string(next.Events[14]) {
		t.Errorf("pages of 15: %d events, behind 5: %d, cursor %q", len(next.Events), len(rest.Events), rest.Cursor)
	}
	fields := strings.Split(strings.TrimSpace(b.ok("", "query", "app", "--limit", "2", "--fields", "message, level,attributes.x", "-o", "table")), "\n")
	if len(fields) != 3 || strings.Join(strings.Fields(fields[0]), " ") != "message level attributes.x" {
		t.Errorf("--fields prints %q", fields)
	}
	buckets := strings.Split(strings.TrimSpace(b.ok("", "query", "app", "--from", "-10m", "--to", "now", "--histogram", "1m", "-o", "ndjson")), "\n")
	if len(buckets) != 11 && len(buckets) != 10 {
		t.Errorf("ten minutes have the buckets %q", buckets)
	}
	b.inTheEnd(20)
	if plan := decoded[query.Estimate](b, "query", "app", "--from", "-1h", "--explain"); plan.Rows != 20 || plan.Parts == 0 || len(plan.Shards) == 0 {
		t.Errorf("the plan is %+v", plan)
	}
	if out := b.ok("", "sql", "-o", "parquet", "SELECT * FROM app"); !strings.HasPrefix(out, "PAR1") || !strings.HasSuffix(out, "PAR1") {
		t.Errorf("parquet is %d bytes that are none", len(out))
	}
	dsn := strings.TrimSpace(b.ok("", "sql", "--print-dsn=native"))
	if !strings.HasPrefix(dsn, "clickhouse://reader:") || !strings.HasSuffix(dsn, "/almanac") {
		t.Error("the native address is not one")
	}
}

// pageCursor is the cursor behind the first five events of an hour.
func pageCursor(b *box) string {
	b.t.Helper()
	return decoded[query.Page](b, "query", "app", "--limit", "5", "--from", "-1h", "-o", "json").Cursor
}
