package integration

import (
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/prompb"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/operations"
)

// What is sent to OTLP over HTTP.
const (
	otlpLogs    = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}`
	otlpMetrics = `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":[{"asDouble":1,"timeUnixNano":"1764000000000000000"}]}}]}]}]}`
)

// remoteWrite is a request of Prometheus with one sample.
func remoteWrite(t *testing.T) string {
	t.Helper()
	w := prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: "m"}},
		Samples: []prompb.Sample{{Value: 1, Timestamp: time.Now().UnixMilli()}},
	}}}
	raw, err := w.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(s2.EncodeSnappy(nil, raw))
}

// Where every client needs a token, each route of each listener refuses one without, but for those that are open to all.
func TestNoTokenOffLoopback(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	k, _, _ := holders(t)
	overHTTP, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base, _ := e.gateway(func(c *gateway.Config) {
		c.Tokens, c.Unasked, c.OTLPHTTP, c.Topic, c.MetricsTopic = k, gateway.UnaskedNone, overHTTP, "app", "app"
	})
	otlp := "http://" + overHTTP.Addr().String()
	routes := []string{
		"POST " + base + "/mcp", "POST " + base + "/elastic/_bulk", "POST " + base + "/elastic/app/_bulk", "PUT " + base + "/elastic/app/_bulk",
		"POST " + otlp + "/v1/logs", "POST " + otlp + "/v1/metrics", "POST " + otlp + "/t/app/v1/logs", "POST " + otlp + "/t/app/v1/metrics",
	}
	inPath := regexp.MustCompile(`\{\w+\}`)
	at := func(pattern string) string {
		method, path, _ := strings.Cut(pattern, " ")
		return method + " " + base + inPath.ReplaceAllString(path, "app")
	}
	for _, o := range operations.All {
		if o.Right.Action == access.Open {
			continue // of a short list (internal/operations)
		}
		routes = append(routes, at(o.Method+" "+o.Path))
	}
	for _, pattern := range gateway.Foreign() {
		routes = append(routes, at(pattern))
	}
	sample := remoteWrite(t)
	for _, route := range routes {
		method, url, _ := strings.Cut(route, " ")
		kind, body := "application/json", "{}"
		if strings.HasSuffix(url, "/write") {
			kind, body = "application/x-protobuf", sample // another kind is refused before
		}
		code, text := e.sendAs(method, url, "", kind, body)
		if code != http.StatusUnauthorized {
			t.Errorf("%s: %d %.200s", strings.NewReplacer(base, "", otlp, "OTLP").Replace(route), code, text)
		}
	}
	if len(routes) < 60 {
		t.Errorf("only %d routes", len(routes))
	}
}
