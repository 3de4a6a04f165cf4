package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/billing"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/query/usage"
)

// diffLine is a diff as a sender writes it.
func diffLine(space, cause string, delta int64, when string) string {
	return fmt.Sprintf(`{"ts":%q,"type":"bytes","provider":"p","space":%q,"cause":%q,"delta":%d,"user_id":"cust-%s"}`, when, space, cause, delta, space)
}

// countsNone fails the test where a statement counts rows.
func (b *box) countsNone(statements ...string) {
	b.t.Helper()
	for _, q := range statements {
		if got := b.ok("", "sql", q, "-o", "ndjson"); got != `{"n":0}`+"\n" {
			b.t.Errorf("%s: %s", q, got)
		}
	}
}

// metered runs Almanac with a topic of diffs.
func metered(t *testing.T) *box {
	t.Helper()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "usage", "--kind", "meter")
	return b
}

// A metered month from send to the bill: each diff three times, in any order, and at once,
// whatever of it was stored.
func TestMeter(t *testing.T) {
	t.Parallel()
	b := metered(t)

	var lines []string
	for range 3 {
		lines = append(lines,
			diffLine("s1", "c-1", 100, "2026-02-01T00:00:00Z"), diffLine("s1", "c-2", 50, "2026-02-10T12:00:00Z"), diffLine("s1", "c-3", -30, "2026-02-20T00:00:00Z"),
			diffLine("s2", "c-1", 1<<40, "2026-01-15T00:00:00Z"), diffLine("s2", "c-2", 1<<30, "2026-02-28T23:00:00Z"), diffLine("s5", "c-1", 100, "2026-02-01T00:00:00Z"))
	}
	seeded(t).Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	b.ok(strings.Join(lines, "\n")+"\n", "send", "usage", "--format", "ndjson")

	february := []string{"--from", "2026-02-01", "--to", "2026-03-01"}
	bill := func(args ...string) usage.Bill {
		return decoded[usage.Bill](b, append([]string{"usage", "usage", "-o", "json"}, args...)...)
	}
	for space, want := range map[string]string{
		"s1": "0 120 298512000000 123.392857142857 3 6",
		"s2": "1099511627776 1100585369600 2659942395386265600000 1099513225606.095238095238 2 4",
		"no": "0 0 0 0 0 0",
	} {
		for _, by := range []string{"--space=" + space, "--customer=cust-" + space} {
			got := bill(append(february, by)...)
			if text := fmt.Sprintf("%s %s %s %s %d %d", got.SizeStart, got.SizeEnd, got.Usage, got.Average, got.Causes, got.Repeats); text != want {
				t.Errorf("%s: %s, want %s", by, text, want)
			}
		}
	}
	if got := bill("--space", "s5", "--from", "2026-02-01", "--to", "2026-02-26"); got.Usage != "216000000000" {
		t.Errorf("s5: %+v", got)
	}
	if got := bill("--space", "s1", "--from", "2026-02-10", "--to", "2026-02-20"); got.SizeStart+" "+got.SizeEnd+" "+got.Usage != "100 150 127440000000" {
		t.Errorf("in the middle: %+v", got)
	}
	page := decoded[usage.Diffs](b, "usage", "usage", "--space", "s1", "--from", "2026-02-10", "--to", "2026-02-20", "--diffs", "-o", "json")
	if len(page.Diffs) != 1 || page.Diffs[0].Cause != "c-2" || page.Diffs[0].Delta != 50 || page.Cursor != "" {
		t.Errorf("diffs: %+v", page)
	}
	contains(t, b.ok("", append([]string{"usage", "usage", "--group-by", "space", "-o", "csv"}, february...)...),
		"bytes,p,s1,,2026-02-01T00:00:00Z,2026-03-01T00:00:00Z,0,120,298512000000,123.392857142857,3,6,\n")
	r := b.run("", append([]string{"usage", "usage", "--group-by", "space", "--check"}, february...)...)
	if r.code != exitOK {
		t.Errorf("check: %d %s", r.code, r.err)
	}
	contains(t, r.err, "3 bills")
	contains(t, b.ok("", "usage", "usage", "--at", "2026-02-10T12:00:00Z", "--group-by", "space", "-o", "csv"), "bytes,p,s1,,2026-02-10T12:00:00Z,150,2,4,\n")
	if got := decoded[usage.Size](b, "usage", "usage", "--space", "s1", "--at", "2026-02-10T11:59:59.999Z", "-o", "json"); got.Size != "100" || got.Causes != 1 {
		t.Errorf("the size before a diff: %+v", got)
	}
	// What a replay prints goes in again as what it was: no attribute says where it was stored.
	b.ok("", "topics", "apply", "copied", "--kind", "meter")
	printed := b.ok("", "replay", "usage")
	b.ok(printed, "send", "copied", "--format", "ndjson")
	b.inTheEnd(0) // a replay leaves out what is not routed in time
	if was, is := storedElsewhere(printed), storedElsewhere(b.ok("", "replay", "copied")); was == "" || is != was {
		t.Errorf("what a replay printed became\n%s\nit was\n%s", is, was)
	}
	b.ok("", "topics", "apply", "kept", "--kind", "meter", "--keep-days", "30")
	b.ok(diffLine("s1", "late", 7, "2026-02-10T12:00:00Z")+"\n"+diffLine("s1", "later", 7, "2026-03-10T12:00:00Z")+"\n", "send", "kept", "--format", "ndjson")
	for args, says := range map[string]string{"--from 2026-01-01 --to now": "(2026-02, 2026-03), and are in no bill: 2;", "--at 2026-02-20": "(2026-02), and are in no bill: 1;", "--at 2026-02-01": ""} {
		r := b.run("", append([]string{"usage", "kept"}, strings.Fields(args)...)...)
		if r.code != exitOK || !strings.Contains(r.err, says) || says == "" && r.err != "" {
			t.Errorf("diffs of months that retention took, %s: exit %d, %s", args, r.code, r.err)
		}
	}
	for call, says := range map[string]string{
		"usage usage --at 2026-02-01 --group-by day":                     "is for a range of time",
		"usage usage --at 2026-02-01 --to 2026-03-01":                    "[at to]",
		"usage usage --from 2026-03-01 --to 2026-02-01":                  "must lie before",
		"usage usage --from 2026-03-01":                                  "--to",
		"usage app --from 2026-02-01 --to 2026-03-01":                    "of kind log",
		"usage nowhere --from 2026-02-01 --to 2026-03-01":                "nowhere",
		"usage usage --from 2026-02-01 --to 2026-03-01 --group-by spice": "space, provider",
	} {
		r := b.run("", strings.Fields(call)...)
		if r.code != exitUsage || !strings.Contains(r.err, says) {
			t.Errorf("%s: exit %d, %s", call, r.code, r.err)
		}
	}
}

// storedElsewhere are printed events, in order, without where they are stored.
func storedElsewhere(lines string) string {
	list := strings.Split(regexp.MustCompile(`,"month":\d+,"shard":"[0-9a-f]{16}","pos":\d+}`).ReplaceAllString(lines, "}"), "\n")
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// derived waits until what a topic has was examined and summed.
func (b *box) derived(topic string, repeats uint64) {
	b.t.Helper()
	embeddedtest.Eventually(b.t, maxWait, func() error {
		rep, err := tryDecoded[verify.Report](b, "verify", topic, "-o", "json")
		if err != nil {
			return err
		}
		for _, t := range rep.Topics {
			if len(t.Derived) > 0 || t.Pending > 0 || t.Repeats != repeats {
				return fmt.Errorf("%d pending, %d repeats, %v", t.Pending, t.Repeats, t.Derived)
			}
		}
		return nil
	})
}

// A customer's diffs are erased: bills are without them at once and later, and none of theirs
// is in what is derived. And a table that is rebuilt says the same.
func TestMeterErased(t *testing.T) {
	t.Parallel()
	b := metered(t)
	var lines []string
	for range 2 {
		lines = append(lines, diffLine("s1", "c-1", 100, "2026-02-01T00:00:00Z"), diffLine("s1", "c-2", 50, "2026-02-10T12:00:00Z"), diffLine("s2", "c-1", 7, "2026-02-03T00:00:00Z"))
	}
	text := strings.Join(lines, "\n") + "\n"
	b.ok(text, "send", "usage", "--format", "ndjson")
	b.derived("usage", 3)
	bills := func() string {
		return b.ok("", "usage", "usage", "--from", "2026-02-01", "--to", "2026-03-01", "--group-by", "customer", "-o", "csv")
	}
	contains(t, bills(), "bytes,,,cust-s1,2026-02-01T00:00:00Z,2026-03-01T00:00:00Z,0,150,", "bytes,,,cust-s2,2026-02-01T00:00:00Z,2026-03-01T00:00:00Z,0,7,15724800000,6.5,1,1,")
	before := bills()
	b.ok("", "rebuild", "usage", "--yes", "--drop-old")
	if after := bills(); after != before {
		t.Errorf("after the rebuild:\n%s\nbefore:\n%s", after, before)
	}
	b.derived("usage", 3)
	if after := bills(); after != before {
		t.Errorf("derived after the rebuild:\n%s\nbefore:\n%s", after, before)
	}
	contains(t, b.ok("", "rebuild", "usage", "--derived", "--dry-run", "-o", "table"), "usage.repeats", "usage.sums", "would be derived again")
	contains(t, b.ok("", "rebuild", "usage", "--derived", "--yes", "-o", "table"), "usage.repeats", "usage.sums", "is derived again")
	if after := bills(); after != before {
		t.Errorf("while it is derived again:\n%s\nbefore:\n%s", after, before)
	}
	b.derived("usage", 3)
	if after := bills(); after != before {
		t.Errorf("derived again:\n%s\nbefore:\n%s", after, before)
	}
	if r := b.run("", "rebuild", "app", "--derived", "--yes"); r.code == exitOK || !strings.Contains(r.err, "nothing is derived from topic") {
		t.Errorf("of a log: exit %d, %s", r.code, r.err)
	}
	b.ok("", "erase", "usage", "--user", "cust-s2", "--yes")
	without := func(when string) {
		t.Helper()
		if text := bills(); strings.Contains(text, "cust-s2") || !strings.Contains(text, "cust-s1") {
			t.Errorf("%s:\n%s", when, text)
		}
	}
	without("at once")
	b.derived("usage", 2)
	without("derived again")
	b.countsNone("SELECT count() AS n FROM `usage.sums` WHERE user_id = 'cust-s2'", "SELECT count() AS n FROM usage_once WHERE space = 's2'")
}

// A file that is sent twice into a topic whose events count once.
func TestSentTwice(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "orders", "--field", "request:string", "--once-by", "service,request")
	var lines strings.Builder
	for i := range 500 {
		fmt.Fprintf(&lines, `{"ts":"2026-02-01T00:00:%02dZ","service":"shop","request":"r-%d","message":"order"}`+"\n", i%60, i)
	}
	for range 2 {
		b.ok(lines.String(), "send", "orders", "--format", "ndjson")
	}
	b.derived("orders", 500)
	if got := b.ok("", "sql", "SELECT (SELECT count() FROM orders) AS n, (SELECT count() FROM orders_once) AS once, (SELECT uniqExact(request) FROM orders_once) AS requests", "-o", "ndjson"); got != `{"n":1000,"once":500,"requests":500}`+"\n" {
		t.Errorf("%s", got)
	}
	contains(t, b.run("", "verify", "orders").err, "500 events came before and must not count; orders_once leaves them out", "proven")
	contains(t, b.run("", "query", "orders", "-o", "table", "--limit", "1").err, "500 events of the topic came before")
}

// A month is closed by the verb, which is killed at some instant, and run again; then a late
// diff is published as a correction, with its cause.
func TestUsageClose(t *testing.T) {
	t.Parallel()
	b := metered(t)
	b.ok("", "topics", "apply", "bills")
	var lines strings.Builder
	for i := range 3000 {
		lines.WriteString(diffLine(fmt.Sprint("s-", i), "c-1", 100, "2026-02-01T00:00:00Z") + "\n")
	}
	b.ok(lines.String(), "send", "usage", "--format", "ndjson")
	rnd := seeded(t)
	call := []string{"usage", "close", "usage", "--month", "2026-02", "--into", "bills"}
	// Killed once the first bills are on their way, then twice at a time that the seed says.
	nc := b.connect()
	for i := range 3 {
		c := b.command(t.Context(), call...)
		sub, err := nc.SubscribeSync("events.bills.>")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(nc.Flush(), c.Start()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := sub.NextMsg(maxWait); err != nil {
				t.Fatal(err)
			}
			_ = c.Process.Kill()
		}
		timer := time.AfterFunc(time.Duration(rnd.IntN(1500))*time.Millisecond, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		timer.Stop()
		_ = sub.Unsubscribe()
	}
	b.ok("", call...)
	contains(t, b.run("", call...).err, "was closed into bills before, with 3,000 bills")
	const bills = "SELECT count() AS n, uniqExact(attributes['space']) AS spaces, sum(toInt128(attributes['usage'])) AS usage FROM bills WHERE type = 'usage.bill'"
	if got := b.ok("", "sql", bills, "--wait", "1m", "-o", "ndjson"); got != `{"n":3000,"spaces":3000,"usage":725760000000000}`+"\n" {
		t.Errorf("bills: %s", got)
	}
	b.ok(diffLine("s-7", "late", 50, "2026-02-10T12:00:00Z")+"\n", "send", "usage", "--format", "ndjson")
	correct := []string{"usage", "corrections", "usage", "--month", "2026-02", "--into", "bills", "-o", "json"}
	for i, call := range [][]string{append(correct, "--dry-run"), correct} {
		got := decoded[billing.Result](b, call...)
		if len(got.Corrections) != 1 || got.Published != i {
			t.Fatalf("%v: %+v", call, got)
		}
		c := got.Corrections[0]
		if c.Space != "s-7" || c.Revision != 1 || c.Was.Usage != "241920000000" || c.Now.Usage != "321840000000" || len(c.Since) != 1 || c.Since[0].Cause != "late" {
			t.Errorf("%v: %+v", call, c)
		}
	}
	contains(t, b.run("", correct[:len(correct)-2]...).err, "nothing moved: 3,000 bills")
}
