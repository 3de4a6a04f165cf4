package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/schemas"
)

// A keyed request that is sent again after an erasure is stored once, and what was erased
// of it stays erased: the answer names the erasure. Under another key it is stored again.
func TestKeyedRequestAfterErasure(t *testing.T) {
	t.Parallel()
	e := running(t, schemas.NewTopic("app"))
	in := e.inputs()
	records := func(users ...string) string {
		var list []string
		for i, u := range users {
			list = append(list, fmt.Sprintf(`{"timeUnixNano":"1795204768%09d","body":{"stringValue":"x"},"attributes":[{"key":"user.id","value":{"stringValue":%q}}]}`, i, u))
		}
		return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + strings.Join(list, ",") + `]}]}]}`
	}
	send := func(body, key string, want, not string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, in.otlp+"/v1/logs", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		code, answer := do(t, req)
		if code != http.StatusOK || !strings.Contains(answer, want) || not != "" && strings.Contains(answer, not) {
			t.Fatalf("%d %s, want %q and not %q", code, answer, want, not)
		}
	}
	count := func(user string, want uint64) {
		t.Helper()
		eventually(t, time.Minute, func() error {
			n, err := e.ask("SELECT count() FROM %s WHERE user_id = '%s'", e.table("app"), user)
			if err == nil && n != want {
				err = fmt.Errorf("%d events of %s, want %d", n, user, want)
			}
			return err
		})
	}
	mixed, others := records("bea", "ann", "bea"), records("cat")
	send(mixed, "", "{}", "")
	send(others, "", "{}", "")
	send(mixed, "", "counted once", "erasure")
	count("bea", 2)
	job := e.erase(erasure.Request{Topic: "app", Users: []string{"bea"}})
	count("bea", 0)

	send(mixed, "", "what the erasure "+job.ID+" took", "")
	lines := `{"ts":"2026-11-20T10:00:00Z","user_id":"bea"}`
	url := in.http + "/v1/topics/app/events"
	if code, answer := keyedLines(t, url, lines, "k-1"); code != http.StatusOK || strings.Contains(answer, "erased_since") {
		t.Errorf("new lines: %d %s", code, answer)
	}
	if code, answer := keyedLines(t, url, lines, "k-1"); code != http.StatusOK || !strings.Contains(answer, `"repeated":true`) || strings.Contains(answer, "erased_since") {
		t.Errorf("lines that came after the erasure, again: %d %s", code, answer)
	}
	count("bea", 1)
	count("ann", 1)
	second := e.erase(erasure.Request{Topic: "app", Users: []string{"bea"}, Where: "service = ''"})
	if code, answer := keyedLines(t, url, lines, "k-1"); code != http.StatusOK || !strings.Contains(answer, `"erased_since":["`+second.ID+`"]`) {
		t.Errorf("lines that the second erasure took: %d %s", code, answer)
	}

	send(mixed, "once more", "{}", "")
	count("bea", 2)
	count("ann", 2)
	count("cat", 1)
	e.verified("app")
}

func keyedLines(t *testing.T, url, body, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Idempotency-Key", key)
	return do(t, req)
}
