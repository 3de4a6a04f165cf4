package main

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/query"
)

// A user of a topic that hashes user_id is found by name, and an
// erasure that matched nothing is not certified.
func TestErasuresFindHashedUsers(t *testing.T) {
	t.Parallel()
	const key = "ALMANAC_PII_KEY=0123456789abcdef0123456789abcdef"
	b := newBox(t, key)
	b.up()
	b.ok("", "topics", "apply", "auth", "--pii", "user_id:hash")
	b.ok(`{"user_id":"u-7","message":"a"}`+"\n"+`{"user_id":"u-7","message":"b"}`+"\n"+`{"user_id":"u-8","message":"c"}`+"\n", "send", "auth", "--format", "ndjson")
	b.inTheEnd(3)

	count := func(args ...string) string {
		return strings.TrimSpace(b.ok("", append([]string{"query", "auth", "--count", "-o", "table"}, args...)...))
	}
	if n := count("--user", "u-7"); n != "2" {
		t.Errorf("u-7 has %s events, want 2", n)
	}
	if n := count("--user", "u-7", "--user", "u-8", "--where", "message = 'a' OR message = 'c'"); n != "2" {
		t.Errorf("u-7 and u-8 have %s of these events, want 2", n)
	}
	if lines := strings.Count(b.ok("", "query", "auth", "--user", "u-8"), "\n"); lines != 1 {
		t.Errorf("u-8 has %d events, want 1", lines)
	}

	// Without the key both refuse, and nothing is entered.
	bare := &box{t: t, dir: b.dir}
	for _, e := range b.env {
		if e != key {
			bare.env = append(bare.env, e)
		}
	}
	for _, args := range [][]string{{"erase", "auth", "--user", "u-7", "--yes"}, {"erase", "auth", "--user", "u-7", "--dry-run"}, {"query", "auth", "--user", "u-7"}} {
		r := bare.run("", args...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("%v without the key: exit %d, %q", args, r.code, r.out)
		}
		contains(t, r.err, "hashes user_id", "ALMANAC_PII_KEY")
	}
	if list := strings.TrimSpace(b.ok("", "erase", "ls", "-o", "json")); list != "[]" {
		t.Errorf("the refused erasures are %s", list)
	}

	// Nothing matched: said, and not certified.
	r := b.run("", "erase", "auth", "--user", "u-9", "--yes")
	if r.code != exitPartial || strings.Contains(r.err, "hash ") {
		t.Errorf("an erasure of nothing: exit %d, want %d", r.code, exitPartial)
	}
	contains(t, r.err, "not certified", "no event matched")

	p := decoded[erasure.Proof](b, "erase", "auth", "--user", "u-7", "--yes", "-o", "json")
	if p.Erasure.Rows != 2 || !p.Certified || p.Hash == "" {
		t.Errorf("%d rows, certified %v (%s), hash %q; want 2", p.Erasure.Rows, p.Certified, p.NotCertified, p.Hash)
	}
	if n := count(); n != "1" {
		t.Errorf("%s events are left, want 1", n)
	}
	rows, erased := uint64(0), uint64(0)
	for _, s := range decoded[[]query.ShardRow](b, "shards", "auth", "-o", "json") {
		rows, erased = rows+s.Rows, erased+s.Erased
	}
	if rows != 1 || erased != 2 {
		t.Errorf("shards have %d rows and lost %d to erasures, want 1 and 2", rows, erased)
	}
	b.ok("", "erase", "resume") // the empty one does not fail forever
}

// Old tables of a rebuild can be dropped, and until they are no
// erasure is certified.
func TestOldTablesAreDropped(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok(`{"user_id":"u-7","message":"a"}`+"\n"+`{"user_id":"u-8","message":"b"}`+"\n", "send", "app", "--format", "ndjson")
	b.inTheEnd(2)
	r := b.run("", "rebuild", "app", "--yes")
	if r.code != exitOK {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.err, "almanac rebuild app --drop-old-tables --yes")

	r = b.run("", "erase", "app", "--user", "u-7", "--yes")
	if r.code != exitPartial {
		t.Errorf("an erasure beside an old table: exit %d, want %d", r.code, exitPartial)
	}
	contains(t, r.err, "not certified", "app_before_", "--drop-old-tables --yes")
	b.diagnosed(exitPartial, "app_before_", "--drop-old-tables")

	if r := b.run("", "rebuild", "app", "--drop-old-tables"); r.code != exitUsage {
		t.Errorf("without --yes: exit %d, want %d", r.code, exitUsage)
	}
	contains(t, b.ok("", "rebuild", "app", "--drop-old-tables", "--dry-run"), "app_before_", "would be dropped")
	contains(t, b.ok("", "rebuild", "app", "--drop-old-tables", "--yes"), "app_before_", "dropped")
	if left := b.ok("", "sql", "SELECT name FROM system.tables WHERE name LIKE 'app_before_%'"); left != "" {
		t.Errorf("left: %s", left)
	}
	id := decoded[[]struct {
		ID string `json:"id"`
	}](b, "erase", "ls", "-o", "json")[0].ID
	if p := decoded[erasure.Proof](b, "erase", "show", id, "-o", "json"); !p.Certified || p.Hash == "" || p.Erasure.Rows != 1 {
		t.Errorf("after the drop: certified %v (%s), %d rows", p.Certified, p.NotCertified, p.Erasure.Rows)
	}
	if n := strings.TrimSpace(b.ok("", "query", "app", "--count", "-o", "table")); n != "1" {
		t.Errorf("app has %s events, want 1", n)
	}
}
