package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/removal"
	querytimers "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/timers"
)

// TestTimers is a timer's way on `almanac up`, by the command line alone: created, called, retried, cancelled,
// and its history in ClickHouse, which verify proves.
func TestTimers(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		data, _ := io.ReadAll(r.Body)
		if strings.Contains(string(data), `"bad"`) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer hook.Close()
	b := newBox(t, "ALMANAC_TIMERS_ALLOW_CIDRS=127.0.0.1/32:1-65535")
	b.up()
	get := func(id string) timers.Timer {
		return decoded[timers.Timer](b, "timers", "get", "mails", id, "-o", "json")
	}
	is := func(id, state string) {
		t.Helper()
		embeddedtest.Eventually(t, maxWait, func() error {
			if tm := get(id); string(tm.State) != state {
				return fmt.Errorf("%s is %s, want %s", id, tm.State, state)
			}
			return nil
		})
	}
	if r := b.run("", "timers", "create", "mails", "x", "--due", "+1s", "--url", hook.URL); r.code != exitUsage || !strings.Contains(r.err, "groups apply") {
		t.Errorf("without a group: exit %d, %s", r.code, r.err)
	}
	b.ok("", "timers", "groups", "apply", "mails", "--slots", "16")
	for flag, says := range map[string]string{"--slots": "0, expected 1 to 4096", "--multiplier": "0 is not a factor"} {
		if r := b.run("", "timers", "groups", "apply", "zero", flag, "0"); r.code != exitUsage || !strings.Contains(r.err, says) {
			t.Errorf("%s 0: %d: %s", flag, r.code, r.err)
		}
	}
	if r := b.run("", "timers", "groups", "apply", "mails", "--slots", "32"); r.code != exitConflict || !strings.Contains(r.err, "frozen") {
		t.Errorf("other slots: exit %d, %s", r.code, r.err)
	}
	create := func(id, due, payload string, more ...string) {
		t.Helper()
		b.ok("", append([]string{"timers", "create", "mails", id, "--due", due, "--url", hook.URL, "--payload", payload}, more...)...)
	}
	create("good", "+1s", `{"n":1}`)
	create("bad", "+0s", `{"bad":1}`, "--attempts", "3")
	create("gone", "+1h", `{}`)
	for _, args := range [][]string{
		{"retry", "mails", "gone"}, {"create", "mails", "gone", "--due", "+2h", "--url", hook.URL, "--payload", `{"other":1}`},
		{"update", "mails", "gone", "--due", "+2h", "--if-revision", "7"}, {"rm", "mails", "gone", "--if-revision", "7"},
	} {
		if r := b.run("", append([]string{"timers"}, args...)...); r.code != exitConflict {
			t.Errorf("timers %v: exit %d, %s", args, r.code, r.err)
		}
	}
	b.ok("", "timers", "rm", "mails", "gone")
	if r := b.run("", "timers", "rm", "mails", "gone"); r.code != exitFailed || !strings.Contains(r.err, "not-found") {
		t.Errorf("the second rm: exit %d, %s", r.code, r.err)
	}
	is("good", "done")
	is("bad", "failed")
	if tm := get("good"); tm.Attempt != 1 || tm.Revision != 1 || tm.Due.IsZero() || tm.Status != 200 {
		t.Errorf("%+v", tm)
	}
	if r := b.run("", "timers", "retry", "mails", "good"); r.code != exitConflict {
		t.Errorf("retry of a timer that is done: exit %d, %s", r.code, r.err)
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	if r := b.run("", "timers", "create", "mails", "y", "--due", "soon", "--url", hook.URL); r.code != exitUsage || !strings.Contains(r.err, "due-not-a-time") {
		t.Errorf("a due time that is none: exit %d, %s", r.code, r.err)
	}
	// Three were created; two were claimed, one was done, one failed, one was cancelled.
	embeddedtest.Eventually(t, maxWait, func() error {
		r := b.run("", "sql", "SELECT state, count() FROM timers GROUP BY state ORDER BY state", "-o", "csv")
		if want := "cancelled,1\ncreated,3\ndone,1\nfailed,1\nfiring,2\n"; !strings.HasSuffix(strings.ReplaceAll(r.out, `"`, ""), want) {
			return errors.New(r.out + r.err)
		}
		return nil
	})
	embeddedtest.Eventually(t, maxWait, func() error {
		if r := b.run("", "verify"); r.code != 0 {
			return errors.New(r.out + r.err)
		}
		return nil
	})
	if c := decoded[[]querytimers.Calls](b, "timers", "status", "--calls", "1h", "-o", "json"); len(c) != 1 || c[0].Calls != 2 || c[0].Done != 1 || c[0].Failed != 1 {
		t.Errorf("calls %+v", c)
	}
	h := decoded[[]timers.Timer](b, "timers", "history", "mails", "bad", "-o", "json")
	if len(h) != 3 || h[0].Op != "created" || h[2].Op != "failed" || h[2].Status != 404 {
		t.Errorf("history %+v", h)
	}
	lines := fmt.Sprintf("%s\n\n%s\n%s\n", `{"id":"one","execute_at":"2030-01-01T00:00:00Z","callback_url":"`+hook.URL+`","payload":{"n":1}}`,
		`{"timerId":"two","executeAt":"2030-01-01T00:00:00Z","callbackUrl":"`+hook.URL+`","retryPolicy":{"maxRetries":2}}`, `{"id":"three","execute_at":"+1h","color":"red"}`)
	for _, want := range []string{"2 timers created, 0 existed, 1 line refused", "0 timers created, 2 existed, 1 line refused"} {
		if r := b.run(lines, "timers", "import", "mails"); r.code != exitPartial || !strings.Contains(r.err, want) || !strings.Contains(r.err, `line 4: it is not the JSON of a timer`) {
			t.Errorf("import: exit %d, %s; expected %s", r.code, r.err, want)
		}
	}
	if tm := get("two"); tm.State != "pending" || tm.Retry == nil || tm.Retry.Attempts != 3 || tm.Due.Year() != 2030 {
		t.Errorf("imported: %+v", tm)
	}
	for id, want := range map[string]bool{"good": true, "bad": true, "gone": false, "two": false} {
		if tm := get(id); (tm.ExecutedAt != nil) != want || tm.ExecutedAt != nil && !tm.ExecutedAt.Equal(tm.UpdatedAt) {
			t.Errorf("%s: executed at %v", id, tm.ExecutedAt)
		}
	}
	if r := b.run("", "sql", "SELECT timer_id, slot, executed_at IS NULL, created_at <= updated_at FROM timers_latest WHERE timer_id IN ('good', 'bad', 'gone') ORDER BY timer_id", "-o", "csv"); !strings.HasSuffix(strings.ReplaceAll(r.out, `"`, ""), "bad,11,0,1\ngone,5,1,1\ngood,2,0,1\n") {
		t.Errorf("timers_latest: %s %s", r.out, r.err)
	}
	inView := map[string]string{}
	for _, row := range decoded[[]struct {
		ID    string `json:"timer_id"`
		State string `json:"state"`
	}](b, "sql", "SELECT timer_id, state FROM timers_latest WHERE `group` = 'mails'", "-o", "json") {
		inView[row.ID] = row.State
	}
	for _, tm := range decoded[[]timers.Timer](b, "timers", "ls", "mails", "-o", "json") {
		if inView[tm.ID] != string(tm.State) {
			t.Errorf("timer %s is %s, in timers_latest %q", tm.ID, tm.State, inView[tm.ID])
		}
	}
	if len(inView) < 5 || inView["two"] != "pending" || inView["gone"] != "cancelled" {
		t.Errorf("timers_latest has %v", inView)
	}
	if r := b.run("", "timers", "ls", "mails", "--slot", "16"); r.code == exitOK || !strings.Contains(r.err, "slot 16: group mails has the slots 0 to 15") {
		t.Errorf("a slot that the group does not have: exit %d, %s", r.code, r.err)
	}
	moved(b, hook.URL)
	for _, args := range [][]string{{"timers"}, {"timers", "--confirm", "timer"}} {
		if r := b.run("timers\n", append([]string{"topics", "rm"}, args...)...); r.code != exitUsage || !strings.Contains(r.err, "nothing was removed") {
			t.Errorf("topics rm %v: exit %d, %s", args, r.code, r.err)
		}
	}
	if p := decoded[removal.Plan](b, "topics", "rm", "timers", "--dry-run", "-o", "json"); p.Messages["TIMERS"] == 0 || p.Rows == 0 || p.Entries == 0 || len(p.Tables) < 2 {
		t.Errorf("a dry run of topics rm: %+v", p)
	}
	if r := b.run(lines, "timers", "import", "letters"); r.code == 0 || r.code == exitPartial || !strings.Contains(r.err, "unknown-group") {
		t.Errorf("import into an unknown group: exit %d, %s", r.code, r.err)
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		out := b.run("", "doctor").out
		if !strings.Contains(out, "timers of timers") || !strings.Contains(out, "1 dispatchers alive") {
			return errors.New(out)
		}
		return nil
	})
}

// moved moves the pending timers of group mails to a group with other slots: each is there once with all that it was created with,
// however often the verbs are run, and those that changed meanwhile stay.
func moved(b *box, hook string) {
	b.t.Helper()
	pause := func(group string) { // a busy machine's dispatcher may see it late
		embeddedtest.Eventually(b.t, maxWait, func() error {
			if r := b.run("", "timers", "pause", group); r.code != 0 {
				return errors.New(r.err)
			}
			return nil
		})
	}
	pause("mails")
	b.ok("", "timers", "groups", "apply", "other", "--slots", "64")
	pause("other")
	b.ok("", "timers", "create", "mails", "past", "--due", "+0s", "--url", hook, "--payload", `{"a":"<&>"}`, "--user", "u-1", "--max-lateness", "1h", "--bare")
	was := map[string]timers.Timer{}
	for _, tm := range decoded[[]timers.Timer](b, "timers", "ls", "mails", "--state", "pending", "-o", "json") {
		was[tm.ID] = tm
	}
	exported := b.ok("", "timers", "export", "mails")
	if n := strings.Count(exported, "\n"); n != 3 || len(was) != 3 {
		b.t.Fatalf("%d lines for %d timers: %s", n, len(was), exported)
	}
	for _, want := range []string{"3 timers created, 0 existed, 0 lines refused", "0 timers created, 3 existed, 0 lines refused"} {
		if r := b.run(exported, "timers", "import", "other"); r.code != 0 || !strings.Contains(r.err, want) {
			b.t.Errorf("import: exit %d, %s; expected %s", r.code, r.err, want)
		}
	}
	b.ok("", "timers", "update", "mails", "one", "--due", "+9h")
	for i, want := range []string{"2 timers cancelled, 0 over, 1 line refused", "0 timers cancelled, 2 over, 1 line refused"} {
		if r := b.run(exported, "timers", "rm", "mails", "--exported"); r.code != exitPartial || !strings.Contains(r.err, want) || !strings.Contains(r.err, `timer "one" has revision 2`) {
			b.t.Errorf("rm %d: exit %d, %s; expected %s", i, r.code, r.err, want)
		}
	}
	if r := b.run(exported, "timers", "rm", "other", "--exported"); r.code != exitPartial || !strings.Contains(r.err, `exported from group "mails"`) {
		b.t.Errorf("rm of another group's export: exit %d, %s", r.code, r.err)
	}
	for _, tm := range decoded[[]timers.Timer](b, "timers", "ls", "other", "-o", "json") {
		w := was[tm.ID]
		if tm.URL != w.URL || string(tm.Payload) != string(w.Payload) || tm.User != w.User || tm.Bare != w.Bare || tm.MaxLateness != w.MaxLateness || !reflect.DeepEqual(tm.Retry, w.Retry) || tm.ID != "past" && !tm.Due.Equal(w.Due) {
			b.t.Errorf("moved: %+v, expected %+v", tm, w)
		}
		if slot := fmt.Sprint(tm.Slot); len(decoded[[]timers.Timer](b, "timers", "ls", "other", "--slot", slot, "-o", "json")) == 0 {
			b.t.Errorf("timer %s is not in slot %s", tm.ID, slot)
		}
		delete(was, tm.ID)
	}
	if len(was) != 0 {
		b.t.Errorf("not moved: %v", was)
	}
	b.ok("", "timers", "resume", "mails")
}
