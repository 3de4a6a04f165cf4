package metrics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// scraped is what a scrape of r answers.
func scraped(t *testing.T, r *Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if kind := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(kind, "text/plain; version=0.0.4; charset=utf-8") {
		t.Errorf("%d %q", w.Code, kind)
	}
	return w.Body.String()
}

// TestHandler holds that a source that fails, panics or says what cannot be is named beside what the others say, and that
// there is an answer where all do.
func TestHandler(t *testing.T) {
	t.Parallel()
	good := Source{"good", func(context.Context) ([]Sample, error) {
		return []Sample{DispatcherCalls.Is(9, "timers", "mails", "done"), TimersPending.Is(7, "timers", "mails")}, nil
	}}
	for name, c := range map[string]struct {
		sources []Source
		says    []string
		lacks   string
		errors  int
	}{
		"good": {[]Source{good}, []string{
			"# TYPE almanac_dispatcher_calls_total counter\nalmanac_dispatcher_calls_total{group=\"mails\",result=\"done\",topic=\"timers\"} 9\n",
			"# HELP almanac_timers_pending " + TimersPending.Help + "\n# TYPE almanac_timers_pending gauge\nalmanac_timers_pending{group=\"mails\",topic=\"timers\"} 7\n",
			`almanac_metrics_source_failed{source="good"} 0`, `almanac_build_info{commit="c",go="g",version="v"} 1`, "\ngo_goroutines ", "\nprocess_start_time_seconds ",
		}, "dispatcher_pending", 0},
		"one fails": {[]Source{good, {"bad", func(context.Context) ([]Sample, error) {
			return []Sample{TimersFiring.Is(1, "timers", "mails")}, errors.New("no NATS")
		}}}, []string{"almanac_timers_pending{", `failed{source="bad"} 1`, `failed{source="good"} 0`}, "timers_firing", 1},
		"all fail": {[]Source{{"bad", func(context.Context) ([]Sample, error) { panic("no NATS") }}}, []string{`failed{source="bad"} 1`, "go_goroutines "}, "timers_pending", 1},
		"no labels": {[]Source{good, {"wrong", func(context.Context) ([]Sample, error) {
			return []Sample{TimersFiring.Is(1, "timers")}, nil
		}}}, []string{"almanac_timers_pending{"}, "timers_firing", 1},
		"said twice": {[]Source{good, {"again", good.Read}}, []string{"almanac_timers_pending{", "go_goroutines "}, "timers_firing", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := 0
			r := New(Config{Version: "v", Commit: "c", Go: "g", OnError: func(string, error) { failed++ }})
			r.Read(c.sources...)
			got := scraped(t, r)
			for _, want := range c.says {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in:\n%s", want, got)
				}
			}
			if strings.Contains(got, c.lacks) || failed != c.errors {
				t.Errorf("%d errors, or %s is in:\n%s", failed, c.lacks, got)
			}
		})
	}
}

// TestCounted holds that what parts count is in a scrape, and that a metric that is not declared is not taken.
func TestCounted(t *testing.T) {
	t.Parallel()
	r := New(Config{})
	r.Counter(DispatcherCallErrors).WithLabelValues("timeout").Add(3)
	r.Gauge(TimersFiring).WithLabelValues("timers", "mails").Set(2)
	got := scraped(t, r)
	for _, want := range []string{`almanac_dispatcher_call_errors_total{error="timeout"} 3`, `almanac_timers_firing{group="mails",topic="timers"} 2`} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	for name, take := range map[string]func(){
		"of another kind": func() { r.Counter(TimersPending) },
		"not declared":    func() { r.Gauge(&Metric{Name: "almanac_x", Kind: Gauge}) },
		"twice":           func() { r.Gauge(TimersFiring) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a metric %s is taken", name)
				}
			}()
			take()
		}()
	}
}
