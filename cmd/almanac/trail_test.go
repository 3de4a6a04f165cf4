package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/schemas"
)

// auditor writes to a topic of kind audit of the box's up.
func (b *box) auditor(topic string) *audit.Trail {
	b.t.Helper()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		b.t.Fatal(err)
	}
	p, err := producer.Connect(b.t.Context(), a.NATS, producer.Config{Topic: topic, Policy: producer.Block, NATS: []nats.Option{nats.Timeout(maxWait)}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = p.Close(b.t.Context()) })
	return audit.New(p)
}

// trail reads all pages of a trail, and how long each was.
func (b *box) trail(topic string, args ...string) (all []trail.Entry, sizes []int) {
	b.t.Helper()
	cursor := ""
	for {
		page, _ := decodedText[trail.Page](b, append([]string{"trail", topic, "-o", "json", "--cursor", cursor}, args...)...)
		all, sizes = append(all, page.Entries...), append(sizes, len(page.Entries))
		if cursor = page.Cursor; cursor == "" {
			return all, sizes
		}
	}
}

// kill ends a daemon at once.
func (s *daemon) kill() {
	s.b.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.b.t.Fatal(err)
	}
	<-s.done
}

// Changes before and after their commit, through a kill of up: each is one entry with its
// final state, and what was never concluded is open.
func TestTrail(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up("--profile", "test")
	b.ok("", "topics", "apply", "trail", "--kind", "audit")
	w := b.auditor("trail")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := time.Date(2026, 2, 1, 12, 0, 0, 1, time.UTC)
	pair := audit.Change{Request: "r-pair", Scope: "projects/p", Service: "iam", Method: "UpdateRole", Type: "role", Resource: "roles/x", Category: "spec_update", Actor: "u-7",
		Before: map[string]string{"name": "old"}, After: map[string]string{"name": "new"}, Time: at}
	must(w.Before(t.Context(), pair))
	must(w.Before(t.Context(), pair)) // the caller did not hear of it
	must(w.After(t.Context(), pair, audit.RolledBack))
	large := audit.Change{Request: "r-large", Scope: "projects/p", Service: "iam", Method: "Import", Type: "role", Resource: "roles/y", Actor: "u-8",
		After: json.RawMessage(`"` + strings.Repeat("x", 5<<20-2) + `"`), Time: at.Add(time.Second)}
	must(w.Before(t.Context(), large))
	must(w.After(t.Context(), large, audit.Committed))
	lost := audit.Change{Request: "r-lost", Scope: "projects/p", Service: "iam", Method: "DeleteRole", Type: "role", Resource: "roles/z", Actor: "u-7", Time: at.Add(2 * time.Second)}
	must(w.Before(t.Context(), lost))
	other := lost
	other.Scope, other.Resource = "projects/q", "roles/other"
	must(w.Before(t.Context(), other))

	scope := []string{"--scope", "projects/p"}
	check := func(when string) {
		t.Helper()
		got, _ := b.trail("trail", append(scope, "--request", "r-pair", "--history")...)
		if len(got) != 1 || got[0].State != "rolled_back" || got[0].Events != 2 || len(got[0].History) != 2 || got[0].Before != `{"name":"old"}` || got[0].After != `{"name":"new"}` || got[0].Ended == nil || got[0].BeforeBytes != 14 {
			t.Errorf("%s: %+v", when, got)
		}
		got, _ = b.trail("trail", append(scope, "--resource", "roles/y")...)
		if len(got) != 1 || got[0].State != "committed" || got[0].AfterBytes != 5242880 {
			t.Fatalf("%s: %+v", when, got)
		}
		if mark, ok := schemas.ParseOmitted(string(got[0].After)); !ok || mark.Bytes != 5242880 || mark.SHA256 != "7d4609b18354076654caa8e3197d14253df3de4cd708df59518b23599678272f" {
			t.Errorf("%s: marker %s", when, got[0].After)
		}
		got, _ = b.trail("trail", append(scope, "--open")...)
		if len(got) != 1 || got[0].RequestID != "r-lost" || got[0].State != "pre_committed" || got[0].Ended != nil {
			t.Errorf("%s, open: %+v", when, got)
		}
		got, _ = b.trail("trail", append(scope, "--actor", "u-7")...)
		if len(got) != 2 || got[0].RequestID != "r-lost" || got[1].RequestID != "r-pair" {
			t.Errorf("%s, by actor: %+v", when, got)
		}
		got, _ = b.trail("trail", "--scope", "projects/q", "--scope", "projects/p", "--service", "iam", "--resource-type", "role", "--where", "state = 'rolled_back'")
		if len(got) != 1 || got[0].Events != 2 {
			t.Errorf("%s, by a filter: %+v", when, got)
		}
	}
	check("at once")
	up.kill()
	b.up("--profile", "test")
	check("after a kill")
	b.ok("", "rebuild", "trail", "--yes", "--drop-old")
	check("after a rebuild")
	b.ok("", "topics", "apply", "copy", "--kind", "audit")
	b.ok("", "replay", "trail", "--into", "copy", "--speed", "max")
	if got, _ := b.trail("copy", append(scope, "--request", "r-pair")...); len(got) != 1 || got[0].State != "rolled_back" || got[0].Events != 2 {
		t.Errorf("replayed: %+v", got)
	}
	contains(t, b.ok("", "trail", "trail", "--scope", "projects/p", "--request", "r-pair", "--history", "-o", "table"), "pre_committed", "rolled_back", "roles/x")
	for call, says := range map[string]string{
		"trail trail --request r-pair":                                      "--scope",
		"trail trail --scope projects/p":                                    "name one of these: the request, the resource",
		"trail trail --scope projects/p --service iam":                      "service and resource type",
		"trail app --scope projects/p --request r":                          "of kind log",
		"trail trail --scope s --request r --cursor x":                      "cursor",
		"trail trail --scope s --request r --limit 0":                       "--limit",
		"trail trail --scope s --request r --open-after 1h":                 "--open",
		"trail trail --scope s --request r --where attributes.a='1'":        "needs service and method",
		"topics apply trail --body-limit 40KiB":                             "body_limit is 40960, it must be 128 to 28672",
		"topics apply app --body-limit 4KiB":                                "only a topic of kind audit has it",
		"topics apply trail --anonymise-after 1 --anonymise resource --yes": `clear the column "resource"`,
		"topics apply trail --pii resource:drop":                            "must have the column resource",
	} {
		r := b.run("", strings.Fields(call)...)
		if r.code == exitOK || !strings.Contains(r.err, says) {
			t.Errorf("%s: exit %d, %s", call, r.code, r.err)
		}
	}
}

// The events of one request within one second, three of them at one nanosecond: all are kept,
// and a page has exactly as many as it was asked for.
func TestTrailPages(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "trail", "--kind", "audit")
	var lines strings.Builder
	line := func(kind string, ns int) {
		_, _ = fmt.Fprintf(&lines, `{"ts":"2026-02-01T12:00:00.%09dZ","type":%q,"request_id":"r-1","scope":"s","service":"svc"}`+"\n", ns, kind)
	}
	for i := range 500 {
		line("log", i*1000)
	}
	for i := range 40 {
		line("message", 600_000+i)
	}
	for _, kind := range []string{"request", "response", "exit"} {
		line(kind, 700_000)
	}
	for range 2 {
		b.ok(lines.String(), "send", "trail", "--format", "ndjson")
	}
	args := []string{"--scope", "s", "--request", "r-1", "--limit", "100"}
	for _, when := range []string{"at once", "stored"} {
		all, sizes := b.trail("trail", args...)
		if fmt.Sprint(sizes) != "[100 100 100 100 100 43]" || len(all) != 543 {
			t.Errorf("%s: pages of %v", when, sizes)
		}
		seen := map[string]bool{}
		for i, e := range all {
			seen[e.Type+e.Began.String()] = true
			if i > 0 && e.Began.After(all[i-1].Began) {
				t.Errorf("%s: %s stands after %s", when, e.Began, all[i-1].Began)
			}
		}
		if len(seen) != 543 {
			t.Errorf("%s: %d different events", when, len(seen))
		}
		b.derived("trail", 543)
	}
	if n := strings.Count(b.ok("", "trail", "trail", "--scope", "s", "--request", "r-1", "--limit", "600", "-o", "ndjson"), "\n"); n != 543 {
		t.Errorf("%d lines", n)
	}
}

// Without NATS an announcement fails by its deadline, and the caller can abort.
func TestBeforeWithoutNATS(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up("--profile", "test")
	b.ok("", "topics", "apply", "trail", "--kind", "audit")
	w := b.auditor("trail")
	change := audit.Change{Request: "r-1", Scope: "s", Type: "role", Resource: "x"}
	if err := w.Before(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	up.kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	change.Request = "r-2"
	began := time.Now()
	err := w.Before(ctx, change)
	if err == nil || !errors.Is(err, producer.ErrOutcomeUnknown) && !errors.Is(err, ctx.Err()) {
		t.Errorf("Before: %v", err)
	}
	if took := time.Since(began); took > maxWait {
		t.Errorf("it took %s", took)
	}
	change.Scope = ""
	if err := w.Before(t.Context(), change); !errors.Is(err, schemas.ErrValue) {
		t.Errorf("without a scope: %v", err)
	}
}
