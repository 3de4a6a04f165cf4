package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// JSON arrays are input, and any JSON path fills a column: declared
// with the topic, for every way in, and by send.
func TestPathsFillColumns(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.write("topics.yaml", "topics:\n- name: trail\n  fields:\n  - {name: event_name, type: lowcardinality, from: eventName}\n  - {name: repo, type: string, from: repo.name}\n  - {name: stream, type: string, from: '@stream'}\n")
	b.ok("", "topics", "apply", "-f", "topics.yaml")
	b.ok("", "topics", "apply", "trail", "--field", "took_ms:int64:stats.took")
	contains(t, b.ok("", "topics", "show", "trail"), "from: eventName", "from: repo.name", "from: '@stream'", "from: stats.took")

	const document = `{"Records":[{"eventTime":"2026-11-01T10:00:00Z","eventName":"Put","repo":{"name":"a/b"},"@stream":"stdout","stats":{"took":7},"who":{"sub":"s-1"}},
{"eventTime":"2026-11-01T10:00:01Z","eventName":"Get","repo":{"name":"a/c"},"@stream":"stderr","stats":{"took":9},"who":{"sub":"s-2"}}]}`
	array := strings.TrimSuffix(strings.TrimPrefix(document, `{"Records":`), "}")
	for _, c := range []struct{ input, format, records string }{{document, "json", "Records"}, {array, "json", ""}, {array, "ndjson", ""}} {
		r := b.run(c.input, "send", "trail", "--format", c.format, "--records", c.records, "--ts-field", "eventTime", "--map", "service=who.sub")
		if r.code != exitOK || !strings.Contains(r.err, "2 read, 2 accepted") {
			t.Fatalf("%s: exit %d: %s", c.format, r.code, r.err)
		}
	}
	b.publish("events.trail.2026-11.0", `{"ts":"2026-11-01T10:00:02Z","eventName":"Bare","repo":{"name":"a/b"},"@stream":"stdout","stats":{"took":11},"service":"s-3"}`)
	b.inTheEnd(7)
	got := b.ok("", "sql", "SELECT event_name, repo, stream, took_ms, service, count() AS n, any(length(attributes)) AS left FROM trail GROUP BY ALL ORDER BY took_ms")
	want := `{"event_name":"Put","repo":"a/b","stream":"stdout","took_ms":7,"service":"s-1","n":3,"left":1}
{"event_name":"Get","repo":"a/c","stream":"stderr","took_ms":9,"service":"s-2","n":3,"left":1}
{"event_name":"Bare","repo":"a/b","stream":"stdout","took_ms":11,"service":"s-3","n":1,"left":0}
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// A filter takes both names.
	for where, n := range map[string]string{"event_name = 'Put'": "3", "eventName = 'Put'": "3", "repo.name = 'a/b' and took_ms < 10": "3", "`@stream` = 'stdout'": "4"} {
		if got := strings.TrimSpace(b.ok("", "query", "trail", "--where", where, "--count", "-o", "table")); got != n {
			t.Errorf("%s: %s events, want %s", where, got, n)
		}
	}
	for _, c := range []struct{ args, says string }{
		{"send trail --map type", "COLUMN=FIELD"}, {"send trail --map no_such=a", "event_name"}, {"send trail --map ts=a", "ts field"},
		{"send trail --map type=a --map service=a", "cannot fill both"}, {"send trail --records a --format ndjson", "format json"},
		{"topics apply trail --field x", "NAME:TYPE:FROM"}, {"topics apply trail --field x:string:msg", "every topic has"},
	} {
		r := b.run("x\n", strings.Fields(c.args)...)
		if r.code == exitOK {
			t.Errorf("%s is taken", c.args)
		}
		contains(t, r.err, c.says)
	}
	// Records without a time are counted as such, or refused where one is required.
	untimed := `{"ts":"2026-11-01T10:00:03Z"}` + "\n{}\n{}\n"
	if r := b.run(untimed, "send", "app", "--format", "ndjson"); r.code != exitOK || !strings.Contains(r.err, "3 read, 3 accepted, 0 refused, 2 had no time and got now") {
		t.Errorf("without a time: exit %d: %s", r.code, r.err)
	}
	long := `{"message":"` + strings.Repeat("x", 70_000) + `"}` + "\n{}\n"
	if r := b.run(long, "send", "app", "--format", "ndjson"); r.code != exitPartial || !strings.Contains(r.err, "2 read, 1 accepted, 1 refused, 1 had no time and got now") {
		t.Errorf("one without a time that is refused: exit %d: %s", r.code, r.err)
	}
	if r := b.run(untimed, "send", "app", "--format", "ndjson", "--require-ts"); r.code != exitPartial || !strings.Contains(r.err, "3 read, 1 accepted, 2 refused") {
		t.Errorf("with --require-ts: exit %d: %s", r.code, r.err)
	}
	r := b.run(array[:len(array)-10], "send", "trail", "--format", "json", "--ts-field", "eventTime")
	if r.code == exitOK || !strings.Contains(r.err, "cut short") || !strings.Contains(r.err, "1 accepted") {
		t.Errorf("an array that is cut short: exit %d: %s", r.code, r.err)
	}
}

// What is published without a lane, as is easily forgotten, is kept as a dead
// letter that says so, and not lost without a word; verify accounts for it.
func TestPublishWithoutALane(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.publish("events.app.2026-11", `{"message":"no lane"}`)
	b.publish("events.app.2026-11.0", `{"ts":"2026-11-01T10:00:00Z","message":"a lane"}`)
	b.ok("", "topics", "apply", "auth", "--pii", "email:drop")
	b.publish("events.auth.2026-11", `{"email":"CLEAR","message":"no lane"}`)
	embeddedtest.Eventually(t, maxWait, func() error {
		if out := b.ok("", "dead", "ls", "-o", "ndjson"); strings.Count(out, "<lane>") != 2 || !strings.Contains(out, `"events.app.2026-11"`) {
			return errors.New("dead letters: " + out)
		}
		return nil
	})
	for line := range strings.Lines(b.ok("", "dead", "ls", "-o", "ndjson")) {
		var letter struct{ Seq uint64 }
		if err := json.Unmarshal([]byte(line), &letter); err != nil {
			t.Fatal(err)
		}
		if shown := b.ok("", "dead", "show", fmt.Sprint(letter.Seq)); !strings.Contains(shown, "no lane") || strings.Contains(shown, "CLEAR") {
			t.Errorf("a letter keeps %s", shown)
		}
	}
	rep := b.inTheEnd(3)
	if rep.Accepted != 3 || rep.Stored != 1 || rep.Dead != 2 || rep.Missing != 0 {
		t.Errorf("%+v", rep)
	}
}

// A replay prints JSON, which cannot have every byte and says so; -o raw has
// every byte of the lines that were sent, stored or not.
func TestReplayKeepsEveryByte(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("%03d caf\xe9 \xff\xed\xb9\xa4 \u00e9 \"quoted\"\ttab %s", i, strings.Repeat("x", i)))
	}
	input := strings.Join(lines, "\n") + "\n"
	b.ok(input, "send", "app")
	sorted := func(text string) string {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n") + "\n"
	}
	for _, stored := range []bool{false, true} {
		if stored {
			b.inTheEnd(300)
		}
		embeddedtest.Eventually(t, maxWait, func() error { // it waits a while for what is to be routed, and says what it left out
			if got := sorted(b.ok("", "replay", "app", "-o", "raw")); got != input {
				return fmt.Errorf("stored: %t: %d bytes of %d came back as they were", stored, len(got), len(input))
			}
			return nil
		})
	}
	if got := b.ok("", "replay", "app"); strings.Count(got, `"almanac_invalid_utf8":"message"`) != 300 || !utf8.ValidString(got) {
		t.Error("JSON is printed without saying that bytes were replaced")
	}
	if r := b.run("", "replay", "app", "-o", "raw", "--into", "copy"); r.code != exitUsage {
		t.Errorf("-o raw into a topic: exit %d", r.code)
	}
}
