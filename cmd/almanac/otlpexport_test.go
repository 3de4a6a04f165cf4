package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// What otlp_export names gets the numbers of every process that runs parts, with what the process is. One that is away is told of once,
// and harms nothing else: events are taken, and the process is ready and ends as it should.
func TestOTLPExportOfProcesses(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	var refused atomic.Int32
	got := make(chan pmetric.ResourceMetrics, 100)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			refused.Add(1)
			http.Error(w, "being replaced", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // its process ended
		}
		of := pmetricotlp.NewExportRequest()
		if of.UnmarshalProto(body) != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("%s is not a request of OTLP", r.URL)
			return
		}
		select {
		case got <- of.Metrics().ResourceMetrics().At(0):
		default:
		}
	}))
	t.Cleanup(endpoint.Close)
	b := newBox(t, exportEveryEnv+"=100ms", "ALMANAC_OTLP_EXPORT="+endpoint.URL)
	up := b.up()
	gateway := b.background("gateway", "--ports", "auto", "--otlp-http", "off", "--otlp-grpc", "off", "--log-format", "json")
	gateway.says(`"message":"ready"`)
	router := b.background("router", "--log-format", "json") // without a page of its own
	router.says(`"message":"ready"`)
	b.ok(lines(3), "send", "app")
	b.inTheEnd(3)

	host, _ := os.Hostname()
	own := map[string]string{fmt.Sprintf("%s-%d", host, up.cmd.Process.Pid): "almanac_stream_used_bytes", fmt.Sprintf("%s-%d", host, gateway.cmd.Process.Pid): "almanac_input_inflight_bytes", fmt.Sprintf("%s-%d", host, router.cmd.Process.Pid): "almanac_build_info"}
	for len(own) > 0 { // each says what it is, and a number of its own
		m := <-got
		at := m.Resource().Attributes().AsRaw()
		if at["service.name"] != "almanac" || at["host.name"] != host || at["service.version"] != version {
			t.Fatalf("the process is %v", at)
		}
		id, _ := at["service.instance.id"].(string)
		for _, m := range m.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == own[id] {
				delete(own, id)
			}
		}
	}
	away.Store(true)
	embeddedtest.Eventually(t, maxWait, func() error {
		if refused.Load() < 20 {
			return fmt.Errorf("the endpoint was asked %d times", refused.Load())
		}
		return nil
	})
	b.ok(lines(4), "send", "app")
	b.inTheEnd(7)
	embeddedtest.Eventually(t, maxWait, func() error {
		_, err := b.try("ready")
		return err
	})
	away.Store(false)
	for name, d := range map[string]*daemon{"up": up, "gateway": gateway, "router": router} {
		d.says("takes this process's numbers again")
		if n := strings.Count(d.stderr(), "did not take this process's numbers"); n != 1 {
			t.Errorf("%s told of it %d times:\n%s", name, n, d.stderr())
		}
	}
	for _, d := range []*daemon{router, gateway, up} {
		if code := d.stop(syscall.SIGTERM); code != exitOK {
			t.Errorf("exit %d: %s", code, d.stderr())
		}
	}
}
