package recording

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/api"
)

// Every route of the API is recorded but for these, which answer with nothing that topics hold
// or only write. A new route is recorded, or is decided on here.
func TestAsks(t *testing.T) {
	t.Parallel()
	not := []string{
		"GET /clickhouse/ping", "GET /metrics", "GET /openapi.yaml",
		"POST /mcp", // which asks routes that are recorded
		"POST /v1/topics/{topic}/events", "POST /v1/verify", "POST /v1/erasures/{id}/resume", "POST /v1/dead/retry", "POST /v1/dead/drop", "DELETE /v1/jobs/{id}", "DELETE /v1/sql/{id}",
		"POST /v1/documents/{topic}", "POST /v1/documents/{topic}/batch", "PUT /v1/documents/{topic}/{id}", "DELETE /v1/documents/{topic}/{id}", "POST /v1/documents/{topic}/{id}/lock", "DELETE /v1/documents/{topic}/{id}/lock",
		"PUT /v1/alerts/rules/{group}", "DELETE /v1/alerts/rules/{group}", "PUT /v1/searches/{search}", "DELETE /v1/searches/{search}", "PUT /v1/timers/{group}/config", "POST /v1/timers/{group}", "DELETE /v1/timers/{group}/{id}",
	}
	doc, err := openapi3.NewLoader().LoadFromData(api.Spec())
	if err != nil {
		t.Fatal(err)
	}
	var unrecorded []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			pattern := method + " " + path
			if strings.HasSuffix(path, "/") { // as the route is written
				pattern += "{$}"
			}
			if !asks(pattern) {
				unrecorded = append(unrecorded, pattern)
			}
		}
	}
	slices.Sort(unrecorded)
	slices.Sort(not)
	if !slices.Equal(unrecorded, not) {
		t.Errorf("not recorded are\n%s\nwant\n%s", strings.Join(unrecorded, "\n"), strings.Join(not, "\n"))
	}
	for pattern, want := range map[string]bool{
		"GET /api/v1/query": true, "POST /api/v1/query_range": true, "POST /t/{topic}/api/v1/labels": true, "GET /t/{topic}/api/v1/label/{name}/values": true, "GET /prometheus/api/v1/rules": true, "GET /t/{topic}/prometheus/api/v1/alerts": true,
		"POST /api/v1/write": false, "POST /t/{topic}/api/v1/write": false, "POST /loki/api/v1/push": false, "GET /loki/api/v1/query_range": true, "GET /loki/api/v1/tail": true, "POST /t/{topic}/loki/api/v1/series": true, "POST /t/{topic}/loki/api/v1/push": false,
		"/elastic/": false, "/": false, "GET /clickhouse": true, "POST /clickhouse/{$}": true,
	} {
		if asks(pattern) != want {
			t.Errorf("%s: %t", pattern, !want)
		}
	}
}

func TestActivity(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", "/t/cpu/api/v1/query?time=1", nil)
	r.RemoteAddr = "192.0.2.7:4711"
	a := activity(r, "POST /t/{topic}/api/v1/query", "query=up")
	if a.Scope != "topics/cpu" || a.Method != "POST /t/{topic}/api/v1/query" || a.Resource != "/t/cpu/api/v1/query" || a.Message != "POST /t/cpu/api/v1/query?time=1" {
		t.Errorf("%+v", a)
	}
	if len(a.Labels) != 2 || a.Labels[0].Text() != "192.0.2.7" || a.Labels[1].Text() != "query=up" {
		t.Errorf("%+v", a.Labels)
	}
	if a.Actor != "" {
		t.Errorf("without a token the actor is %q", a.Actor)
	}
	who := &access.Principal{Name: "grafana", Token: &access.Token{}}
	if a := activity(r.WithContext(access.With(r.Context(), who)), "POST /t/{topic}/api/v1/query", ""); a.Actor != "grafana" {
		t.Errorf("the actor is %q", a.Actor)
	}
	for raw, want := range map[string]string{
		"/v1/topics":                                       "/v1/topics",
		"/v1/topics/app/events?where=a+%3D+%27b":           "/v1/topics/app/events?where=a+%3D+%27b",
		"/clickhouse/?user=u&password=s&query=S1":          "/clickhouse/?user=u&password=xxxxx&query=S1",
		"/clickhouse/?password=se;cret&query=S1":           "/clickhouse/?password=xxxxx&query=S1",
		"/clickhouse/?password=100%&query=S1":              "/clickhouse/?password=xxxxx&query=S1",
		"/clickhouse/?Password=s&PASSWORD=t":               "/clickhouse/?password=xxxxx&password=xxxxx",
		"/clickhouse/?p%61ssword=s&a=1;password=t;u=v&q=1": "/clickhouse/?password=xxxxx&a=1;password=xxxxx&q=1",
		"/v1/documents/app/a%3Fpath=x":                     "/v1/documents/app/a%3Fpath=x",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := asked(u); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}
