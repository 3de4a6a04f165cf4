package inputs

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// prometheusEnv is for how many minutes TestPrometheus runs; one by default.
const prometheusEnv = "ALMANAC_PROMETHEUS_MINUTES"

// TestPrometheus has a Prometheus watch itself, write to Almanac by remote write while that is killed twice, and asks
// both the same: each sample is there once, bit by bit, and rates are the same.
func TestPrometheus(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no prometheus on PATH: apt install prometheus")
	}
	minutes, err := strconv.ParseFloat(os.Getenv(prometheusEnv), 64)
	if err != nil {
		minutes = 1
	}
	n := up(t)
	theirs := n.prometheus(program)
	began := time.Now()
	part := time.Duration(minutes * float64(time.Minute) / 3)
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, 0} {
		if err := backoff.Sleep(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		if end != 0 {
			n.again(end)
		}
	}
	at := time.Now()
	ours := n.HTTP + "/t/cpu"
	window := fmt.Sprintf("%.0fs", math.Ceil(at.Sub(began).Seconds())+60)
	all := url.Values{"query": {`{job="itself"}[` + window + `]`}, "time": {fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000)}}
	var want *matrix
	embeddedtest.Eventually(t, maxWait, func() (err error) { // it sends what waited, and keeps what it asked for before that moment later
		if want, err = asked(theirs, "query", all); err != nil {
			return err
		}
		got, err := asked(ours, "query", all)
		if err != nil {
			return err
		}
		return want.equal(got)
	})
	if len(want.values) < 1000 {
		t.Fatalf("Prometheus has %d samples itself", len(want.values))
	}
	t.Logf("%s: %d samples of %d series are the same through two kills", at.Sub(began).Round(time.Second), len(want.values), want.series)
	// Where a series begins within the range, versions of Prometheus differ in what they make of that: the rates compared
	// begin later.
	start := strconv.FormatFloat(math.Ceil(want.first)+21, 'f', -1, 64)
	for _, q := range []string{
		"rate(prometheus_tsdb_head_samples_appended_total[15s])", "sum by (handler) (rate(prometheus_http_requests_total[15s]))",
		"histogram_quantile(0.9, sum by (le) (rate(prometheus_http_request_duration_seconds_bucket[15s])))", "increase(process_cpu_seconds_total[20s])", "up",
	} {
		form := url.Values{"query": {q}, "start": {start}, "end": {strconv.FormatInt(at.Unix(), 10)}, "step": {"5"}}
		want, got := samples(t, theirs, "query_range", form), samples(t, ours, "query_range", form)
		if err := want.equal(got); err != nil || len(want.values) == 0 {
			t.Errorf("%s, %d values: %v", q, len(want.values), err)
		}
	}
	if out, err := n.command("verify").CombinedOutput(); err != nil && !strings.Contains(string(out), "PENDING") {
		t.Errorf("verify: %v: %s", err, out)
	}
}

// prometheus runs one that watches itself each second and writes to the topic cpu, and returns its address.
func (n *node) prometheus(program string) (url string) {
	n.t.Helper()
	address := embeddedtest.FreeAddress(n.t)
	config := filepath.Join(n.dir, "prometheus.yml")
	text := fmt.Sprintf(`global: {scrape_interval: 1s}
scrape_configs:
- job_name: itself
  static_configs: [{targets: [%q]}]
remote_write:
- url: %s/t/cpu/api/v1/write
  queue_config: {min_backoff: 100ms, max_backoff: 2s}
`, address, n.HTTP)
	write(n.t, config, text)
	cmd := exec.Command(program, "--config.file", config, "--storage.tsdb.path", filepath.Join(n.dir, "tsdb"), "--web.listen-address", address)
	alongside(n.t, cmd)
	url = "http://" + address
	embeddedtest.Eventually(n.t, maxWait, func() error {
		resp, err := http.Get(url + "/-/ready")
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("Prometheus answers %s", resp.Status)
		}
		return nil
	})
	return url
}

// matrix is what a query answers, by series and time.
type matrix struct {
	series int
	values map[string]float64
	first  float64 // its earliest time, Unix
}

// equal says which value another does not have so, or has beside.
func (m *matrix) equal(other *matrix) error {
	for at, v := range m.values {
		got, ok := other.values[at]
		if !ok {
			return fmt.Errorf("%s is missing, of %d there are %d", at, len(m.values), len(other.values))
		}
		if math.Float64bits(got) != math.Float64bits(v) && (got == got || v == v) {
			return fmt.Errorf("%s is %v, expected %v", at, got, v)
		}
	}
	for at := range other.values {
		if _, ok := m.values[at]; !ok {
			return fmt.Errorf("%s is more than there was", at)
		}
	}
	return nil
}

// samples asks the API of Prometheus, or Almanac's.
func samples(t *testing.T, base, path string, form url.Values) *matrix {
	t.Helper()
	m, err := asked(base, path, form)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// asked is samples, of a server that may not answer yet.
func asked(base, path string, form url.Values) (*matrix, error) {
	resp, err := http.PostForm(base+"/api/v1/"+path, form)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s %.500s (%w)", base, form, resp.Status, body, err)
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	m := &matrix{series: len(answer.Data.Result), values: map[string]float64{}, first: math.Inf(1)}
	for _, s := range answer.Data.Result {
		name, err := json.Marshal(s.Metric)
		if err != nil {
			return nil, err
		}
		for _, v := range s.Values {
			text, _ := v[1].(string)
			at, _ := v[0].(float64)
			m.first = min(m.first, at)
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %v: %w", name, v, err)
			}
			m.values[fmt.Sprintf("%s at %.3f", name, at)] = value
		}
	}
	return m, nil
}
