package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/schemas"
)

// Real records of CloudTrail, sent twice and through a kill: each of them is one entry.
func TestCloudTrail(t *testing.T) {
	t.Parallel()
	in, err := gzip.NewReader(bytes.NewReader(inputtest.RecordedBytes(t, "../audit-cloudtrail.jsonl.gz")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t)
	up := b.up("--profile", "test")
	for _, topic := range []string{"cloudtrail", "copy"} {
		b.ok("", "topics", "apply", topic, "--kind", "audit", "--field", "request_id:string:eventID", "--field", "scope:lowcardinality:recipientAccountId", "--field", "method:lowcardinality:eventName")
	}
	for i := range 2 {
		b.ok(string(text), "send", "cloudtrail", "--format", "ndjson", "--ts-field", "eventTime", "--map", "type=eventType", "--map", "service=eventSource", "--user-field", "userIdentity.userName")
		if i == 0 {
			up.kill()
			b.up("--profile", "test")
		}
	}
	count := func(topic string, args ...string) int {
		t.Helper()
		seen := map[string]bool{}
		for _, actor := range args {
			all, _ := b.trail(topic, "--scope", "123837392027", "--limit", "1000", "--actor", actor)
			for i := range all {
				seen[all[i].RequestID] = true
			}
			if actor != "" && len(seen) < len(all) {
				t.Errorf("%s of %s: an entry is there twice", actor, topic)
			}
		}
		return len(seen)
	}
	check := func(topic, when string) {
		t.Helper()
		if got := b.ok("", "sql", "--wait", "1m", "-o", "ndjson", "SELECT count() AS n, uniqExact(request_id) AS requests, uniqExact(user_id) AS users FROM "+topic+"_once"); !strings.HasPrefix(got, `{"n":1220,"requests":1220,`) {
			t.Errorf("%s: %s", when, got)
		}
		if n := count(topic, "bert-jan"); n != 1139 {
			t.Errorf("%s: %d of bert-jan, want 1139", when, n)
		}
		if n := count(topic, "bert-jan", "benjamin"); n != 1139+44 {
			t.Errorf("%s: %d of both, want 1183", when, n)
		}
	}
	b.derived("cloudtrail", 1220)
	check("cloudtrail", "twice")
	b.ok("", "rebuild", "cloudtrail", "--yes", "--drop-old")
	b.derived("cloudtrail", 1220)
	check("cloudtrail", "after a rebuild")
	b.ok("", "replay", "cloudtrail", "--into", "copy", "--speed", "max")
	b.derived("copy", 1220)
	check("copy", "replayed")
	b.ok("", "erase", "cloudtrail", "--user", "benjamin", "--yes")
	if n := count("cloudtrail", "benjamin"); n != 0 {
		t.Errorf("%d of the user that was erased", n)
	}
	b.derived("cloudtrail", 1176)
	if got := b.ok("", "sql", "-o", "ndjson", "SELECT count() AS n FROM cloudtrail_once"); got != `{"n":1176}`+"\n" {
		t.Errorf("after the erasure: %s", got)
	}
}

// Bad lines are refused one by one, each for what is wrong with it, and the good ones of the
// same batch are stored; from NATS they are dead letters by reason.
func TestTrailBadInput(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "trail", "--kind", "audit", "--body-limit", "1KiB")
	var lines strings.Builder
	line := func(rest string) {
		_, _ = fmt.Fprintf(&lines, `{"ts":"2026-02-01T00:00:00Z",%s}`+"\n", rest)
	}
	line(`"type":"change","request_id":"r-1","scope":"s","resource":"x","state":"pre_committed","before":{"a":[1,2]},"after":"{}"`)
	line(`"type":"change","request_id":"r-2","scope":"s","state":"done"`)
	line(`"type":"request","scope":"s"`)
	line(`"type":"request","request_id":"r-4"`)
	line(`"type":"request","request_id":"r-5","scope":""`)
	line(`"request_id":"r-6","scope":"s"`)
	line(`"type":"request","request_id":"r-7","scope":"s","category":"gossip"`)
	line(`"type":"change","request_id":"r-8","scope":"s","after":"not json"`)
	line(`"type":"change","request_id":"r-9","scope":"s","after":"` + strings.Repeat("x", 2000) + `"`)
	line(`"type":"change","request_id":"r-10","scope":"s","resource":"y","after":{"k":"` + strings.Repeat("x", 2000) + `"}`)
	r := b.run(lines.String(), "send", "trail", "--format", "ndjson")
	for _, want := range []string{
		`line 2 refused: bad value: state is "done", it must be one of`, "line 3 refused: bad value: request_id is missing", "line 4 refused: bad value: scope is missing",
		"line 5 refused: bad value: scope is empty", "line 6 refused: bad value: type is empty", `line 7 refused: bad value: category is "gossip", it must be one of`,
		`line 8 refused: bad value: after is "not json", it must be JSON`, "line 9 refused: bad value: after has 2000 bytes that are not JSON", "10 read, 2 accepted, 8 refused",
	} {
		contains(t, r.err, want)
	}
	b.publish("events.trail.2026-02.0", lines.String())
	embeddedtest.Eventually(t, maxWait, func() error {
		if out := b.ok("", "dead", "ls", "trail", "-o", "json"); !strings.Contains(out, "bad-value") {
			return fmt.Errorf("dead letters: %s", out)
		}
		return nil
	})
	// The good two came twice, and by NATS under a lane that is not theirs.
	all, _ := b.trail("trail", "--scope", "s", "--open", "--open-after", "1s")
	if len(all) != 1 || all[0].RequestID != "r-1" || all[0].Events != 1 || all[0].Before != `{"a":[1,2]}` || all[0].BeforeBytes != 11 || all[0].AfterBytes != 2 {
		t.Errorf("open: %+v", all)
	}
	all, _ = b.trail("trail", "--scope", "s", "--resource", "y")
	if len(all) != 1 || all[0].AfterBytes != 2008 {
		t.Fatalf("%+v", all)
	}
	if mark, ok := schemas.ParseOmitted(string(all[0].After)); !ok || mark.Bytes != 2008 {
		t.Errorf("%s", all[0].After)
	}
	if got := decoded[trail.Page](b, "trail", "trail", "--scope", "t", "--resource", "y", "-o", "json"); len(got.Entries) != 0 {
		t.Errorf("of another scope: %+v", got.Entries)
	}
}
