package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestQueryCSV holds that `query -o csv` prints one header and a row for each event, over all reads that a page takes and on by the
// cursor, whatever its texts have in them, and that counts are refused in this form.
func TestQueryCSV(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "app")
	texts := []string{`plain`, `with, comma`, `with "quotes"`, "two\nlines", `'; DROP TABLE app`, `=1+1`, "ümlaut \t tab"}
	const months = 12 // more shards than one read looks through
	header := []string{"ts", "message", "attributes.host"}
	want := [][]string{}
	var lines strings.Builder
	for month := 1; month <= months; month++ {
		for i, text := range texts {
			at := fmt.Sprintf("2025-%02d-03T00:00:%02d.000000000Z", month, i)
			line, err := json.Marshal(map[string]string{"ts": at, "message": text, "host": fmt.Sprintf("h,%d", i)})
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(line, '\n'))
			want = append(want, []string{at, text, fmt.Sprintf("h,%d", i)})
		}
	}
	b.ok(lines.String(), "send", "app", "--format", "ndjson")
	sheet := func(args ...string) (rows [][]string, said string) {
		t.Helper()
		r := b.run("", append([]string{"query", "app", "-o", "csv", "--order", "asc"}, args...)...)
		if r.code != exitOK {
			t.Fatalf("%q: exit %d: %s", args, r.code, r.err)
		}
		rows, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
		if err != nil || len(rows) == 0 {
			t.Fatalf("%q: %v: %s", args, err, r.out)
		}
		return rows, r.err
	}
	fields := []string{"--fields", strings.Join(header, ",")}
	same := func(got, want [][]string) {
		t.Helper()
		if len(got) == 0 || !slices.Equal(got[0], header) || !slices.EqualFunc(got[1:], want, slices.Equal[[]string]) {
			t.Errorf("%q, want %q", got, append([][]string{header}, want...))
		}
	}
	all, _ := sheet(append(fields, "--limit", "1000")...)
	same(all, want)
	some, said := sheet(append(fields, "--limit", "5")...)
	same(some, want[:5])
	cursor := regexp.MustCompile(`--cursor (\S+)`).FindStringSubmatch(said)
	if cursor == nil {
		t.Fatalf("it does not say how to go on: %s", said)
	}
	rest, _ := sheet(append(fields, "--limit", "1000", "--cursor", cursor[1])...)
	same(rest, want[5:])
	none, _ := sheet(append(fields, "--where", "message = 'none'")...)
	same(none, nil)
	whole, _ := sheet("--limit", "1")
	if len(whole) != 2 || !slices.Contains(whole[0], "id") || !slices.Contains(whole[0], "shard") || len(whole[0]) != len(whole[1]) {
		t.Errorf("all columns: %q", whole)
	}
	for _, count := range [][]string{{"--count"}, {"--histogram", "1d"}} {
		if r := b.run("", append([]string{"query", "app", "-o", "csv"}, count...)...); r.code != exitUsage || !strings.Contains(r.err, "csv is for pages of events") || r.out != "" {
			t.Errorf("%q: exit %d: %s%s", count, r.code, r.out, r.err)
		}
	}
}
