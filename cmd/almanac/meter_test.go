package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/query/usage"
)

// diffLine is a diff as a sender writes it.
func diffLine(space, cause string, delta int64, when string) string {
	return fmt.Sprintf(`{"ts":%q,"type":"bytes","provider":"p","space":%q,"cause":%q,"delta":%d,"user_id":"cust-%s"}`, when, space, cause, delta, space)
}

// A metered month from send to the bill: each diff three times, in any order, and at once,
// whatever of it was stored.
func TestMeter(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "usage", "--kind", "meter")

	var lines []string
	for range 3 {
		lines = append(lines,
			diffLine("s1", "c-1", 100, "2026-02-01T00:00:00Z"), diffLine("s1", "c-2", 50, "2026-02-10T12:00:00Z"), diffLine("s1", "c-3", -30, "2026-02-20T00:00:00Z"),
			diffLine("s2", "c-1", 1<<40, "2026-01-15T00:00:00Z"), diffLine("s2", "c-2", 1<<30, "2026-02-28T23:00:00Z"), diffLine("s5", "c-1", 100, "2026-02-01T00:00:00Z"))
	}
	rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
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
	for call, says := range map[string]string{
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
