package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/prometheus/prompb"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/ops/alerttest"
)

// maxSeries is what a page may have with 20 topics.
const maxSeries = 3_000

// Every metric that the rules, the dashboard, the runbooks, README and docs/operations.md name is in a scrape after one event
// through each input, and nothing of the page is against Prometheus' rules. With 20 topics it is not long.
func TestScrapeHasWhatIsNamed(t *testing.T) {
	t.Parallel()
	b := newBox(t, "ALMANAC_VERIFY_EVERY=1s")
	cert, key := certstest.New(t, "ca").Files(t, b.dir, "syslog")
	var topics strings.Builder
	topics.WriteString("topics:\n- {name: metrics, kind: metric}\n- {name: timers, kind: timer}\n")
	for i := range 17 {
		fmt.Fprintf(&topics, "- {name: t%d}\n", i)
	}
	b.write("almanac.yaml", topics.String()) // app is there anyway
	b.up("--syslog-tls", "127.0.0.1:0", "--syslog-cert", cert, "--syslog-key", key)
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	b.sendThroughEach(a)
	b.ok("", "timers", "groups", "apply", "mails")
	b.ok("", "timers", "create", "mails", "one", "--due", "+1h", "--url", "http://127.0.0.1:1/")
	b.write("rules.yaml", `groups: [{name: quiet, rules: [{alert: Quiet, topic: app, silence: 1h}, {record: one, topic: metrics, interval: 1s, expr: vector(1)}]}]`)
	b.ok("", "alerts", "apply", "-f", filepath.Join(b.dir, "rules.yaml"))
	for i := range 17 {
		b.post(a.HTTP+fmt.Sprintf("/v1/topics/t%d/events", i), "text/plain", "hi")
	}
	b.ok("", "verify") // waits for what is on its way

	named, err := alerttest.Named("../..")
	if err != nil {
		t.Fatal(err)
	}
	var page []byte
	embeddedtest.Eventually(t, maxWait, func() error {
		page = b.get(a.HTTP + "/metrics")
		var s alerttest.Samples
		if _, err := s.Scrape("up", bytes.NewReader(page), time.Now()); err != nil {
			return err
		}
		there := s.Names()
		var missing []string
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if !there[name] {
				missing = append(missing, name+" of "+named[name])
			}
		}
		for _, in := range pool.Inputs {
			if in != pool.InputAudit && !strings.Contains(string(page), fmt.Sprintf(`almanac_input_last_event_timestamp_seconds{input="%s"`, in)) {
				missing = append(missing, "an event of "+string(in))
			}
		}
		if !strings.Contains(string(page), `almanac_sink_stored_events_total{topic="t16"} 1`) {
			missing = append(missing, "the last topic")
		}
		if len(missing) > 0 {
			return errors.New(strings.Join(missing, "\n"))
		}
		return nil
	})
	series := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	if series > maxSeries {
		t.Errorf("20 topics have %d series, expected %d at most", series, maxSeries)
	}
	t.Logf("%d series", series)
	problems, err := promlint.New(bytes.NewReader(page)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v: %v", problems, err)
	}
	t.Run("promtool", func(t *testing.T) { promtool(t, page, "check", "metrics") })
}

// sendThroughEach sends one event through each input.
func (b *box) sendThroughEach(a embedded.Addresses) {
	t := b.t
	t.Helper()
	b.post(a.HTTP+"/v1/topics/app/events", "text/plain", "hi")
	b.post(a.OTLPHTTP+"/t/app/v1/logs", "application/json", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"hi"}}]}]}]}`)
	b.post(a.HTTP+"/t/app/loki/api/v1/push", "application/json", fmt.Sprintf(`{"streams":[{"stream":{"app":"a"},"values":[["%d","hi"]]}]}`, time.Now().UnixNano()))
	b.post(a.HTTP+"/elastic/app/_bulk", "application/x-ndjson", "{\"create\":{}}\n{\"message\":\"hi\"}\n")
	write := prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels: []prompb.Label{{Name: "__name__", Value: "up"}}, Samples: []prompb.Sample{{Value: 1, Timestamp: time.Now().UnixMilli()}},
	}}}
	body, err := write.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	b.post(a.HTTP+"/t/metrics/api/v1/write", "application/x-protobuf", string(snappy.Encode(nil, body)), "Content-Encoding", "snappy")

	client, err := grpc.NewClient(a.OTLPGRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	logs := plog.NewLogs()
	logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("hi")
	ctx := metadata.AppendToOutgoingContext(t.Context(), "almanac-topic", "app")
	if _, err := plogotlp.NewGRPCClient(client).Export(ctx, plogotlp.NewExportRequestFromLogs(logs)); err != nil {
		t.Fatal(err)
	}

	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", a.SyslogTLS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "<14>1 %s host app - - - hi\n", time.Now().UTC().Format(time.RFC3339)); err != nil {
		t.Fatal(err)
	}
}

// post sends a body, which must be taken.
func (b *box) post(to, kind, body string, headers ...string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	b.asked(req)
}

// get returns a page, which must be there.
func (b *box) get(of string) []byte {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), maxWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, of, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.asked(req)
}

func (b *box) asked(req *http.Request) []byte {
	b.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		b.t.Fatalf("%s %s: %s, %v: %s", req.Method, req.URL, resp.Status, err, answer)
	}
	return answer
}

// page returns a page, or nil where nothing answers.
func (b *box) page(of string) []byte {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), maxWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, of, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return page
}
