package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/recording"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Each read over HTTP is recorded before it is answered, with what was asked and by whom, and
// a read that cannot be recorded is not answered.
func TestReadsAreRecorded(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"), schemas.NewTopicOf(kinds.Audit, "reads"), schemas.NewTopicOf(kinds.Metric, "cpu"))
	e.router()
	e.sink()
	base, _ := e.gateway(func(cfg *gateway.Config) { cfg.AuditReads, cfg.AuditActor, cfg.MetricsTopic = "reads", "X-User", "cpu" })
	c := &caller{t, base, http.DefaultClient}
	holds(t, c.send(200, "POST", "/v1/topics/app/events", `{"message":"private","user_id":"u-7"}`, "X-Request-Id", "a-write"), `"accepted":1`)

	where := url.QueryEscape("user_id = 'u-7'")
	holds(t, c.send(200, "GET", "/v1/topics/app/events?where="+where, "", "X-Request-Id", "r-events", "X-User", "ann"), "private")
	holds(t, c.send(200, "GET", "/v1/topics/app/count", "", "X-Request-Id", "r-count"), `"count":1`)
	holds(t, c.send(400, "GET", "/v1/topics/app/events?limit=x", "", "X-Request-Id", "r-refused"), "limit")
	c.send(200, "POST", "/v1/sql", "SELECT 1 AS n", "X-Request-Id", "r-sql", "X-User", "bob")
	c.send(200, "GET", "/clickhouse/?user=u&password=hidden&query=SELECT+1", "", "X-Request-Id", "r-clickhouse")
	if got := string(c.send(200, "GET", "/clickhouse/?query=SELECT", " 7", "X-Request-Id", "r-both")); got != "7\n" {
		t.Errorf("a statement in two parts: %q", got)
	}
	c.send(200, "HEAD", "/v1/topics/app/count", "", "X-Request-Id", "r-head")
	c.send(200, "POST", "/t/cpu/api/v1/query", "query=up", "Content-Type", "application/x-www-form-urlencoded", "X-Request-Id", "r-promql")
	c.send(200, "GET", "/clickhouse/ping", "", "X-Request-Id", "a-ping")
	// What would hide in a record is refused, and not asked.
	holds(t, c.send(413, "POST", "/v1/sql", "SELECT 1 -- "+strings.Repeat("x", recording.MaxBytes), "X-Request-Id", "a-long"), "too_large")
	holds(t, c.send(415, "POST", "/clickhouse/", "SELECT 1", "Content-Encoding", "gzip", "X-Request-Id", "a-gzip"), "compressed")
	for _, how := range []string{"decompress=1", "Decompress=1", "a=;decompress=1", "x;decompress=0&decompress=1"} {
		holds(t, c.send(415, "POST", "/clickhouse/?"+how, "SELECT 1", "X-Request-Id", "a-lz4"), "compressed")
	}
	holds(t, c.send(400, "GET", "/v1/topics/app/count", "", "X-User", strings.Repeat("x", 300), "X-Request-Id", "a-name"), "X-User has 300 bytes")
	c.send(404, "POST", "/v1/timers/g/t/retry", "", "X-Request-Id", "r-retry")
	c.send(200, "POST", "/clickhouse/", "SELECT 1", "X-ClickHouse-Database", "system", "X-Request-Id", "r-database")

	// So are those that clients of Loki and assistants make, with the topic that a header names.
	lines, form := url.QueryEscape(`{level!="x"}`), "application/x-www-form-urlencoded"
	c.send(200, "GET", "/loki/api/v1/query_range?query="+lines, "", "X-Request-Id", "r-loki")
	holds(t, c.send(200, "POST", "/loki/api/v1/query_range", "query="+lines, "Content-Type", form, "X-Scope-OrgID", "app", "X-Request-Id", "r-tenant"), "private")
	c.send(200, "GET", "/loki/api/v1/labels", "", "X-Scope-OrgID", "a tenant of Loki", "X-Request-Id", "r-unnamed")
	tail, _, err := dialLoki(t.Context(), base, http.Header{"X-Request-Id": {"r-tail"}, "X-Scope-Orgid": {"app"}}, "query", `{level!="x"}`) //nolint:bodyclose // the answer to a handshake has no body
	if err != nil {
		t.Fatal(err)
	}
	_ = tail.CloseNow()
	c.send(200, "GET", "/prometheus/api/v1/rules", "", "X-Request-Id", "r-rules")
	c.send(200, "GET", "/v1/sql/schema", "", "X-Request-Id", "r-schema")
	c.send(200, "GET", "/v1/events?topic=app", "", "X-Request-Id", "r-several")
	holds(t, c.send(200, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"topic":"app"}}}`,
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "X-Request-Id", "r-assistant"), "count")

	want := map[string]string{
		"r-events":     "ann|topics/app|GET /v1/topics/app/events?where=" + where + "|",
		"r-count":      "|topics/app|GET /v1/topics/app/count|",
		"r-refused":    "|topics/app|GET /v1/topics/app/events?limit=x|",
		"r-sql":        "bob|almanac|POST /v1/sql|SELECT 1 AS n",
		"r-clickhouse": "|almanac|GET /clickhouse/?user=u&password=xxxxx&query=SELECT+1|",
		"r-both":       "|almanac|GET /clickhouse/?query=SELECT| 7",
		"r-head":       "|topics/app|HEAD /v1/topics/app/count|",
		"r-retry":      "|almanac|POST /v1/timers/g/t/retry|",
		"r-database":   "|almanac|POST /clickhouse/|SELECT 1system",
		"r-promql":     "|topics/cpu|POST /t/cpu/api/v1/query|query=up",
		"r-loki":       "|almanac|GET /loki/api/v1/query_range?query=" + lines + "|",
		"r-tenant":     "|topics/app|POST /loki/api/v1/query_range|query=" + lines,
		"r-unnamed":    "|almanac|GET /loki/api/v1/labels|",
		"r-tail":       "|topics/app|GET /loki/api/v1/tail?query=" + lines + "|",
		"r-rules":      "|almanac|GET /prometheus/api/v1/rules|",
		"r-schema":     "|almanac|GET /v1/sql/schema|",
		"r-several":    "|almanac|GET /v1/events?topic=app|",
		"r-assistant":  "|topics/app|GET /v1/topics/app/count|",
	}
	got := map[string]string{}
	eventually(t, 30*time.Second, func() error {
		page, err := e.reader().Query(t.Context(), query.Request{Topic: "reads", Limit: 100})
		if err != nil {
			return err
		}
		clear(got)
		for _, ev := range page.Events {
			var r struct {
				RequestID  string `json:"request_id"`
				Type       string
				UserID     string `json:"user_id"`
				Scope      string
				Category   string
				Message    string
				Attributes map[string]string
			}
			if err := json.Unmarshal(ev, &r); err != nil {
				return err
			}
			if r.UserID != "" || r.Attributes["client"] != "127.0.0.1" || r.Type != recording.TypeRead || r.Category != kinds.CategoryRead {
				t.Errorf("%s", ev)
			}
			got[r.RequestID] = strings.Join([]string{r.Attributes[recording.LabelClaimed], r.Scope, r.Message, r.Attributes["body"] + r.Attributes["database"]}, "|")
		}
		if len(got) < len(want) {
			return fmt.Errorf("%d reads are recorded", len(got))
		}
		return nil
	})
	for id, text := range want {
		if got[id] != text {
			t.Errorf("%s: %q, want %q", id, got[id], text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("recorded are %v", got)
	}

	for _, topic := range []string{"app", "nosuch"} {
		base, _ := e.gateway(func(cfg *gateway.Config) { cfg.AuditReads = topic })
		unrecorded := &caller{t, base, http.DefaultClient}
		answer := unrecorded.send(503, "GET", "/v1/topics/app/events", "")
		if holds(t, answer, "not_recorded", topic); strings.Contains(string(answer), "private") {
			t.Errorf("answered all the same: %s", answer)
		}
		holds(t, unrecorded.send(200, "POST", "/v1/topics/app/events", `{"message":"taken"}`), `"accepted":1`)
	}
}
