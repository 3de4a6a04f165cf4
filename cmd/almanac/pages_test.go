package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/query"
)

// manyMonths is lines for each month from 2010 on, of so many users each.
func manyMonths(months, users int) string {
	var b strings.Builder
	for m := range months {
		for u := range users {
			fmt.Fprintf(&b, `{"ts":"%d-%02d-03T04:05:06Z","user_id":"u-%d","message":"month %d"}`+"\n", 2010+m/12, m%12+1, u, m)
		}
	}
	return b.String()
}

// A query follows its pages, however many shards have nothing.
func TestQueryFollowsPages(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok("", "topics", "apply", "months", "--lanes", "4")
	b.ok(manyMonths(12, 16), "send", "months", "--format", "ndjson")
	b.inTheEnd(192)
	if shards := strings.Count(b.ok("", "shards", "months", "-o", "ndjson"), "\n"); shards != 48 {
		t.Fatalf("%d shards, want 48", shards)
	}
	rare := []string{"query", "months", "--where", "message = 'month 0' AND user_id = 'u-3'"}
	page := decoded[query.Page](b, append(rare, "-o", "json", "--page")...)
	if len(page.Events) != 0 || page.Cursor == "" {
		t.Fatalf("the first page has %d events, cursor %q: nothing has to be followed", len(page.Events), page.Cursor)
	}
	r := b.run("", rare...)
	if r.code != exitOK || strings.Count(r.out, "\n") != 1 || strings.Contains(r.err, "--cursor") {
		t.Errorf("exit %d, want the one event and no cursor:\n%s%s", r.code, r.out, r.err)
	}
	if whole := decoded[query.Page](b, append(rare, "-o", "json")...); len(whole.Events) != 1 || whole.Cursor != "" || len(whole.Shards) != 48 {
		t.Errorf("a document of %d events from %d shards, cursor %q, want the one event of all 48", len(whole.Events), len(whole.Shards), whole.Cursor)
	}
	contains(t, b.ok("", append(rare, "-o", "table")...), "month 0")
	contains(t, b.ok("", append(rare, "-o", "table", "--fields", "message")...), "month 0")

	r = b.run("", append(rare, "--page")...)
	if r.code != exitOK || r.out != "" {
		t.Errorf("--page: exit %d, stdout %q", r.code, r.out)
	}
	contains(t, r.err, "there may be more: --cursor")

	// To the limit and no further, and on from there.
	r = b.run("", "query", "months", "--limit", "100")
	if n := strings.Count(r.out, "\n"); n != 100 {
		t.Errorf("--limit 100 prints %d events", n)
	}
	_, cursor, _ := strings.Cut(strings.TrimSpace(r.err), "--cursor ")
	rest := b.ok("", "query", "months", "--limit", "100", "--cursor", cursor)
	seen := map[string]bool{}
	for line := range strings.Lines(r.out + rest) {
		seen[line] = true
	}
	if len(seen) != 192 {
		t.Errorf("both have %d different events, want 192", len(seen))
	}
}

// Pages of every list by times that move with the clock are of one range, where the same command is
// repeated with the cursor that the page before ended with.
func TestPagesByRelativeTimes(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok("", "topics", "apply", "customers", "--kind", "document")
	for _, id := range []string{"a", "b", "c"} {
		b.ok(`{"n":1}`, "docs", "put", "customers", id)
	}
	b.ok("one\ntwo\nthree\n", "send", "app", "--format", "text")
	b.inTheEnd(6)
	for _, command := range []string{
		"query app --page --limit 1 --from -1h --to now -o ndjson", "docs ls customers --limit 1 --from -1h --to now -o ndjson", "docs changed customers --limit 1 --from -1h -o ndjson",
	} {
		args, seen := strings.Fields(command), map[string]bool{}
		for more := args; more != nil; {
			r := b.run("", more...)
			if r.code != exitOK || seen[r.out] {
				t.Fatalf("almanac %v: exit %d, page %d\n%s%s", more, r.code, len(seen)+1, r.out, r.err)
			}
			if r.out != "" {
				seen[r.out] = true
			}
			more = nil
			if _, cursor, ok := strings.Cut(r.err, "--cursor "); ok {
				more = append(args[:len(args):len(args)], "--cursor", strings.Fields(cursor)[0])
			}
		}
		if len(seen) != 3 {
			t.Errorf("almanac %s: %d pages, want 3", command, len(seen))
		}
	}
	exportedOnce(t, b)
}
