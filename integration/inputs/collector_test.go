package inputs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// TestCollector sends through an OpenTelemetry Collector with a queue on disk while Almanac is stopped and killed,
// three times each: each record is stored once.
func TestCollector(t *testing.T) {
	if rows := throughCollector(t, 200_000, up); rows != 200_000 {
		t.Errorf("%d rows are stored of 200,000 records", rows)
	}
}

// TestCollectorEachTime does the same without otlp_once: no record is lost, and how many came twice is counted.
func TestCollectorEachTime(t *testing.T) {
	const records = 60_000
	rows := throughCollector(t, records, func(t *testing.T, _ ...string) *node { return up(t, "--otlp-once", "false") })
	t.Logf("%d rows are stored of %d records: %d came twice", rows, records, rows-records)
	if rows < records {
		t.Errorf("%d rows are stored of %d records", rows, records)
	}
}

// throughCollector sends so many records, waits until each is stored, and returns how many rows they have.
func throughCollector(t *testing.T, records int, begin func(*testing.T, ...string) *node) (rows int) {
	t.Helper()
	program := os.Getenv("ALMANAC_OTELCOL")
	if program == "" {
		t.Skip("ALMANAC_OTELCOL names no Collector; make inputs builds one from collector/builder.yaml")
	}
	const batch = 500
	n := begin(t)
	in := n.collector(program)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()

	sent := make(chan error, 1)
	steps := make(chan int, records/batch)
	go func() {
		defer close(steps)
		for first := 0; first < records; first += batch {
			if err := export(ctx, in, first, batch); err != nil {
				sent <- err
				return
			}
			steps <- first
		}
		sent <- nil
	}()
	ends := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL}
	for first := range steps {
		if done := len(ends); done > 0 && first >= (7-done)*records/8 {
			n.again(ends[0])
			ends = ends[1:]
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if len(ends) > 0 {
		t.Fatalf("%d ends of Almanac were not tried", len(ends))
	}
	embeddedtest.Eventually(t, 10*time.Minute, func() error {
		out, err := n.command("sql", "SELECT count(), uniqExact(attributes['n']) FROM app WHERE service = 'collected'", "--format", "TSV").Output()
		if err != nil {
			return err
		}
		var different int
		if _, err := fmt.Sscan(string(out), &rows, &different); err != nil || different != records {
			return fmt.Errorf("%d different records are stored, expected %d (%w)", different, records, err)
		}
		return nil
	})
	if out, err := n.command("verify").CombinedOutput(); err != nil { // which fails while any is pending
		t.Fatalf("verify: %v: %s", err, out)
	}
	return rows
}

// TestTelemetrygen sends by OpenTelemetry's own generator, over HTTP and gRPC.
func TestTelemetrygen(t *testing.T) {
	program := os.Getenv("ALMANAC_TELEMETRYGEN")
	if program == "" {
		t.Skip("ALMANAC_TELEMETRYGEN names no telemetrygen; make inputs installs it")
	}
	n := up(t)
	for service, args := range map[string][]string{
		"telemetrygen-http": {"--otlp-http", "--otlp-endpoint", strings.TrimPrefix(n.OTLPHTTP, "http://")},
		"telemetrygen-grpc": {"--otlp-endpoint", n.OTLPGRPC},
	} {
		args = append([]string{"logs", "--otlp-insecure", "--logs", "100", "--workers", "2", "--rate", "0", "--service", service, "--body", "from telemetrygen"}, args...)
		runClient(t, n, n.dir, program, args...)
		for _, ev := range n.found("app", "service = '"+service+"'", 200) {
			ev.has(t, map[string]string{"level": "info", "message": "from telemetrygen"})
		}
	}
}

// collector runs a Collector that sends to Almanac, and returns where it takes logs.
func (n *node) collector(program string) (url string) {
	n.t.Helper()
	address := embeddedtest.FreeAddress(n.t)
	config := filepath.Join(n.dir, "collector.yaml")
	queue := filepath.Join(n.dir, "queue")
	if err := os.Mkdir(queue, 0o700); err != nil {
		n.t.Fatal(err)
	}
	text := fmt.Sprintf(`extensions: {file_storage: {directory: %q}}
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters:
  otlphttp:
    endpoint: %q
    sending_queue: {storage: file_storage, queue_size: 100000, num_consumers: 4}
    retry_on_failure: {initial_interval: 100ms, max_interval: 2s, max_elapsed_time: 0}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines: {logs: {receivers: [otlp], exporters: [otlphttp]}}
`, queue, address, n.OTLPHTTP)
	write(n.t, config, text)
	cmd := exec.Command(program, "--config", "file:"+config)
	alongside(n.t, cmd)
	embeddedtest.Eventually(n.t, maxWait, func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	return "http://" + address + "/v1/logs"
}

// export gives records to the Collector until it takes them.
func export(ctx context.Context, url string, first, count int) error {
	logs := plog.NewLogs()
	r := logs.ResourceLogs().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "collected")
	to := r.ScopeLogs().AppendEmpty().LogRecords()
	for i := range count {
		one := to.AppendEmpty()
		one.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		one.Body().SetStr("a record through a Collector")
		one.Attributes().PutStr("n", fmt.Sprint(first+i))
	}
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	if err != nil {
		return err
	}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-protobuf")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		answer, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			return nil
		case http.StatusTooManyRequests, http.StatusServiceUnavailable: // its queue is full
		default:
			return fmt.Errorf("the Collector answered %s %s", resp.Status, answer)
		}
	}
}
