package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/doctor"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/send"
	"github.com/almanac-events/almanac/query"
)

// lines is 1 to n, a line each.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// inTheEnd waits until verify says that nothing is on its way, and returns it.
func (b *box) inTheEnd(accepted uint64) (rep verify.Report) {
	b.t.Helper()
	embeddedtest.Eventually(b.t, maxWait, func() (err error) {
		if rep, err = tryDecoded[verify.Report](b, "verify", "-o", "json"); err != nil {
			return err
		}
		if rep.Pending != 0 || rep.Accepted < accepted {
			return fmt.Errorf("%d accepted, %d pending", rep.Accepted, rep.Pending)
		}
		return nil
	})
	return rep
}

// The README's half minute, and the reports beside it.
func TestJourneyOfCommands(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")

	r := b.run(lines(1000), "send", "app", "--format", "text")
	if r.code != exitOK || r.out != "" {
		t.Errorf("send: exit %d, stdout %q", r.code, r.out)
	}
	contains(t, r.err, "1000 read, 1000 accepted, 0 refused")
	var page query.Page
	embeddedtest.Eventually(t, maxWait, func() error { // shards come when the events are routed
		page = decoded[query.Page](b, "query", "app", "--limit", "10", "-o", "json") // at once, before the insert
		if len(page.Events) != 10 || page.Cursor == "" {
			t.Errorf("a page of 10 has %d events, cursor %q", len(page.Events), page.Cursor)
		}
		if len(page.Shards) == 0 {
			return errors.New("the page names no shard")
		}
		return nil
	})
	next := strings.Split(strings.TrimSpace(b.ok("", "query", "app", "--limit", "10", "--cursor", page.Cursor)), "\n")
	if len(next) != 10 || next[0] == string(page.Events[9]) {
		t.Errorf("the next page has %d lines, the first is %s", len(next), next[0])
	}
	if rep := b.inTheEnd(1000); !rep.OK() || rep.Stored != 1000 || rep.Missing != 0 || rep.Doubled != 0 {
		t.Errorf("%+v", rep)
	}
	const count = "SELECT count() AS n, uniqExact(id) AS ids FROM app"
	for o, want := range map[string]string{"ndjson": `{"n":1000,"ids":1000}` + "\n", "json": `[` + "\n" + `{"n":1000,"ids":1000}` + "\n]\n", "csv": `"n","ids"` + "\n1000,1000\n"} {
		if got := b.ok("", "sql", count, "-o", o); got != want {
			t.Errorf("sql -o %s printed %q, want %q", o, got, want)
		}
	}
	contains(t, b.ok("", "sql", count, "-o", "table"), "│ 1000 │")
	contains(t, b.ok(count, "sql"), "1000") // from stdin

	contains(t, b.examined(), "ok", "NATS", "ClickHouse", "writes to disk before it acknowledges")
	var found []doctor.Finding
	if err := json.Unmarshal([]byte(b.examined("-o", "json")), &found); err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Status == doctor.Fail {
			t.Errorf("doctor: %+v", f)
		}
	}
	if rows := decoded[[]query.ShardRow](b, "shards", "app", "-o", "json"); len(rows) == 0 || rows[0].Rows == 0 {
		t.Errorf("shards: %+v", rows)
	}
	contains(t, b.ok("", "shards"), "SHARD", "app-registry:", "active")

	t.Run("refused", func(t *testing.T) { refusedRequests(t, b) })
	t.Run("topics", func(t *testing.T) { topics(t, b) })
	t.Run("dead", func(t *testing.T) { deadLetters(t, b) })
	t.Run("tail", func(t *testing.T) { tails(t, b) })
}

func refusedRequests(t *testing.T, b *box) {
	b.t = t
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "did you mean level?", []string{"query", "app", "--where", "levl = 'x'"}},
		{exitUsage, "unknown topic", []string{"query", "nosuch"}},
		{exitUsage, "unknown topic", []string{"send", "nosuch"}},
		{exitUsage, "bad topic name", []string{"verify", "No"}},
		{exitUsage, "month 13", []string{"shards", "--month", "2026-13"}},
		{exitUsage, "Syntax error", []string{"sql", "SELEC 1"}},
		{exitUsage, "only reads, and this is DROP", []string{"sql", "DROP TABLE app"}},
		{exitUsage, "only reads, and this is INSERT", []string{"sql", "/* x */ insert INTO app SELECT 1"}},
		{exitUsage, "privileges", []string{"sql", "EXPLAIN SELECT 1 FROM system.users"}},
		{exitUsage, "no such dead letter", []string{"dead", "show", "999999"}},
		{exitUsage, "lanes", []string{"topics", "apply", "app", "--lanes", "9"}},
	} {
		r := b.run("", c.args...)
		if r.code != c.code {
			t.Errorf("%v: exit %d, want %d", c.args, r.code, c.code)
		}
		contains(t, r.err, c.says)
	}
}

func topics(t *testing.T, b *box) {
	b.t = t
	contains(t, b.run("", "topics", "apply", "auth", "--field", "status:int64", "--dry-run").err, "nothing was changed")
	if strings.Contains(b.ok("", "topics", "ls"), "auth") {
		t.Error("a dry run declared the topic")
	}
	contains(t, b.ok("", "topics", "apply", "auth", "--field", "status:int64", "--rotate-rows", "7"), "created")
	contains(t, b.ok("", "sql", "SELECT count() AS n FROM auth"), `{"n":0}`)
	// What show prints, apply takes; a flag changes only what it names.
	shown := b.ok("", "topics", "show", "auth")
	contains(t, b.ok(shown, "topics", "apply", "-f", "-"), "unchanged")
	contains(t, b.ok("", "topics", "apply", "auth", "--keep-days", "9"), "changed")
	shown = b.ok("", "topics", "show", "auth")
	contains(t, shown, "rows: 7", "name: status", "keep_days: 9")
	// Where there are events, less retention is asked for twice.
	r := b.run("", "topics", "apply", "app", "--keep-days", "5")
	if r.code != exitUsage {
		t.Errorf("a shorter retention without --yes: exit %d, want %d", r.code, exitUsage)
	}
	contains(t, r.err, "say --yes", "would be dropped", "kept 5 days, it was kept forever", "app-registry:")
	contains(t, b.run("", "topics", "apply", "app", "--keep-days", "5", "--dry-run").err, "nothing was changed", "app-registry:")
	contains(t, b.ok("", "topics", "show", "app"), "# kept forever", "keep_days: 0")
	contains(t, b.ok("", "topics", "apply", "app", "--anonymise-after", "36500", "--anonymise", "user_id,attributes.ip", "--yes"), "changed")
	contains(t, b.ok("", "topics", "show", "app"), "# next anonymise 21", "- attributes.ip", "after_days: 36500")
	contains(t, b.ok("", "topics", "show", "app", "-o", "json"), `"next_anonymise": "21`)
	contains(t, b.ok("", "topics", "apply", "app", "--anonymise-after", "0", "--anonymise", ""), "changed")
	r = b.run("topics:\n- name: auth\n  lane: 3", "topics", "apply", "-f", "-")
	if r.code != exitConfig {
		t.Errorf("a bad file: exit %d, want %d", r.code, exitConfig)
	}
	contains(t, r.err, "-:3", "did you mean lanes?")
}

func deadLetters(t *testing.T, b *box) {
	b.t = t
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(a.NATS, nats.Timeout(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish("events.app.2026-11.0", []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	var letters []query.DeadLetter
	embeddedtest.Eventually(t, maxWait, func() (err error) {
		if letters, err = tryDecoded[[]query.DeadLetter](b, "dead", "ls", "-o", "json"); err == nil && len(letters) != 1 {
			err = fmt.Errorf("%d dead letters", len(letters))
		}
		return err
	})
	name := letters[0].ID
	contains(t, b.ok("", "dead", "ls"), name)
	contains(t, b.ok("", "dead", "show", fmt.Sprint(letters[0].Seq)), "not-json", name)
	if raw := b.ok("", "dead", "show", name, "--raw"); raw != "garbage" {
		t.Errorf("dead show --raw printed %q", raw)
	}
	b.diagnosed(exitPartial, "almanac dead ls", "checks warn")
}

func tails(t *testing.T, b *box) {
	b.t = t
	out := b.write("tail.out", "")
	f, err := os.OpenFile(out, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	tail := b.command(t.Context(), "tail", "app", "--where", "message = 'hello'", "--with-pos", "--limit", "2")
	tail.Stdout = f
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	// When it has begun to listen cannot be seen from outside: send until it has heard enough.
	done := make(chan error, 1)
	go func() { done <- tail.Wait() }()
	embeddedtest.Eventually(t, maxWait, func() error {
		b.ok("other\nhello\n", "send", "app", "-q")
		select {
		case err := <-done:
			if code := exitStatus(t, err); code != 0 {
				t.Errorf("tail: exit %d", code)
			}
			return nil
		default:
			return fmt.Errorf("tail goes on")
		}
	})
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	heard := strings.Split(strings.TrimSpace(string(text)), "\n")
	var first struct {
		Pos     string `json:"_pos"`
		Message string `json:"message"`
	}
	if len(heard) != 2 || json.Unmarshal([]byte(heard[0]), &first) != nil || first.Message != "hello" || first.Pos == "" {
		t.Fatalf("tail printed %q", heard)
	}
	// From the first one's position on, the second comes again and nothing before.
	again := strings.TrimSpace(b.ok("", "tail", "app", "--where", "message = 'hello'", "--with-pos", "--limit", "1", "--from-pos", first.Pos))
	if again != heard[1] {
		t.Errorf("resumed tail printed %s, want %s", again, heard[1])
	}
	for o, want := range map[string]string{"ndjson": `{"message":"hello","attributes":{}}`, "table": "hello"} {
		if got := strings.TrimSpace(b.ok("", "tail", "app", "--where", "message = 'hello'", "--fields", "message, attributes.x", "--limit", "1", "--from-pos", first.Pos, "-o", o)); got != want {
			t.Errorf("tail --fields -o %s printed %q, want %q", o, got, want)
		}
	}
}

func TestSendRefusesLines(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	input := `{"message":"one"}` + "\nnot json\n" + `{"ts":"2260-01-01T00:00:00Z"}` + "\n\n" + `{"message":"five","ts":"2026-11-01T00:00:00Z"}` + "\n"
	report := filepath.Join(b.dir, "accepted")
	r := b.run(input, "send", "app", "--format", "ndjson", "--report", report, "-o", "json")
	if r.code != exitPartial {
		t.Errorf("exit %d, want %d", r.code, exitPartial)
	}
	var sum send.Summary
	if err := json.Unmarshal([]byte(r.out), &sum); err != nil {
		t.Fatal(err)
	}
	if sum.Read != 4 || sum.Accepted != 2 || sum.Refused != 2 || len(sum.Refusals) != 2 || sum.Refusals[0].Line != 2 || sum.Refusals[1].Line != 3 {
		t.Errorf("%+v", sum)
	}
	if got, _ := os.ReadFile(report); string(got) != "1\n5\n" && string(got) != "5\n1\n" {
		t.Errorf("the report says %q", got)
	}
	// A record above 64 KiB: the refusal says what keeps it, and that does.
	long := strings.Repeat("x", 300_000)
	r = b.run("short\n"+long+"\n", "send", "app", "--format", "text")
	contains(t, r.err, "line 2 refused", "--cut", "--split")
	for _, flag := range []string{"--cut", "--split"} {
		if r = b.run("short\n"+long+"\n", "send", "app", "--format", "text", flag, "--service", flag[2:], "-o", "json"); r.code != exitOK {
			t.Errorf("%s: exit %d, %s", flag, r.code, r.out+r.err)
		}
		contains(t, r.out, `"read": 2`, `"accepted": 2`)
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		if n := strings.TrimSpace(b.ok("", "query", "app", "--count", "--where", "service = 'cut' or service = 'split'")); n != `{"count":8}` {
			return fmt.Errorf("%s events of two short and two long records, expected 8: one is cut, one is in five parts", n)
		}
		return nil
	})
	if r = b.run(long, "send", "app", "--cut", "--split"); r.code != exitUsage {
		t.Errorf("both: exit %d", r.code)
	}
	r = b.run("x\ny\n", "send", "app", "--format", "ndjson")
	if r.code != exitFailed {
		t.Errorf("nothing accepted: exit %d, want %d", r.code, exitFailed)
	}
	contains(t, r.err, "line 1 refused", "line 2 refused", "2 read, 0 accepted, 2 refused")
	if r = b.run("", "send", "app"); r.code != exitOK {
		t.Errorf("nothing to send: exit %d, want %d", r.code, exitOK)
	}
	// JSON that is sent as text says so, unless a line is something else or text was asked for.
	const hint = "pass --format ndjson"
	contains(t, b.run(`{"a":1}`+"\n"+`{"a":2}`+"\n", "send", "app").err, hint)
	for _, quiet := range []result{b.run(`{"a":1}`+"\nx\n", "send", "app"), b.run(`{"a":1}`+"\n", "send", "app", "--format", "text"), b.run("", "send", "app")} {
		if strings.Contains(quiet.err, hint) {
			t.Errorf("the format is as meant, and it printed %q", quiet.err)
		}
	}
	// Two files are one input; lines count on.
	one, two := b.write("one", "a\nb\n"), b.write("two", "c\n")
	b.ok("", "send", "app", one, two, "--report", report+"2", "-q")
	got, _ := os.ReadFile(report + "2")
	numbers := strings.Fields(string(got))
	slices.Sort(numbers)
	if !slices.Equal(numbers, []string{"1", "2", "3"}) {
		t.Errorf("two files gave the lines %v", numbers)
	}
}

// What send reported accepted is there after kill -9 of up and a second start,
// and send finds the second one, although it listens elsewhere.
func TestSendSurvivesKill(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up()
	const n = 300_000
	input, report := b.write("lines", lines(n)), filepath.Join(b.dir, "accepted")
	send := b.background("send", "app", input, "--report", report)
	embeddedtest.Eventually(t, maxWait, func() error {
		if info, err := os.Stat(report); err != nil || info.Size() < 100_000 {
			return fmt.Errorf("too little is accepted: %w", err)
		}
		return nil
	})
	up.stop(syscall.SIGKILL)
	b.up()
	<-send.done
	if send.code != exitOK {
		t.Fatalf("send: exit %d\n%s", send.code, send.stderr())
	}
	rep := b.inTheEnd(n)
	if !rep.OK() || rep.Stored != n {
		t.Errorf("%+v", rep)
	}
	if got := strings.TrimSpace(b.ok("", "sql", "SELECT count() AS n, uniqExact(id) AS ids, uniqExact(message) AS lines FROM app")); got != `{"n":300000,"ids":300000,"lines":300000}` {
		t.Errorf("after the kill there are %s", got)
	}
	text, _ := os.ReadFile(report)
	if got := strings.Count(string(text), "\n"); got != n {
		t.Errorf("%d lines were reported accepted, want %d", got, n)
	}
}

// Ctrl-C while NATS is away: send says what was accepted, and ends.
func TestSendInterrupted(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up()
	input, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = feed.Close() }()
	report := filepath.Join(b.dir, "accepted")
	cmd := b.command(t.Context(), "send", "app", "--report", report)
	var errs strings.Builder
	cmd.Stdin, cmd.Stderr = input, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = input.Close()
	if _, err := feed.WriteString("one\n"); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		if got, _ := os.ReadFile(report); string(got) != "1\n" {
			return fmt.Errorf("the report says %q", got)
		}
		return nil
	})
	up.stop(syscall.SIGKILL)
	if _, err := feed.WriteString("two\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitStatus(t, cmd.Wait()); code != exitInterrupted {
		t.Errorf("exit %d, want %d", code, exitInterrupted)
	}
	contains(t, errs.String(), "1 accepted")
}
