package export

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// TestExport holds that an endpoint gets every number as it is, and that one that refuses or is away is told of and asked again.
func TestExport(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "Counts."}, []string{"topic"})
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h_seconds", Help: "Takes.", Buckets: []float64{1, 2}})
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g", Help: "Is."})
	r.MustRegister(c, h, g)
	c.WithLabelValues("app").Add(3)
	g.Set(-2.5)
	for _, v := range []float64{.5, 1.5, 1.6, 9} {
		h.Observe(v)
	}
	type request struct {
		path, kind string
		metrics    pmetric.Metrics
	}
	got := make(chan request, 10)
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(req.Body)
		of := pmetricotlp.NewExportRequest()
		if err != nil || of.UnmarshalProto(body) != nil {
			t.Errorf("no request of OTLP: %v", err)
		}
		select {
		case got <- request{req.URL.Path, req.Header.Get("Content-Type"), of.Metrics()}:
		default:
		}
	}))
	defer s.Close()
	failed := make(chan error, 100)
	e := Exporter{
		URL: s.URL + "/", Every: time.Millisecond, LastWait: time.Minute, Resource: map[string]string{"service.name": "almanac"},
		Gather: func(context.Context) ([]*dto.MetricFamily, error) { return r.Gather() },
		OnPost: func(err error) {
			if err != nil {
				failed <- err
			}
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	if err := <-failed; !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "not now") {
		t.Error(err)
	}
	one := <-got
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if one.path != "/v1/metrics" || one.kind != "application/x-protobuf" {
		t.Errorf("%s of %s", one.path, one.kind)
	}
	resource := one.metrics.ResourceMetrics().At(0)
	if v, _ := resource.Resource().Attributes().Get("service.name"); v.Str() != "almanac" {
		t.Error(resource.Resource().Attributes().AsRaw())
	}
	seen := map[string]bool{}
	for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
		seen[m.Name()] = true
		switch m.Name() {
		case "c_total":
			p := m.Sum().DataPoints().At(0)
			if v, _ := p.Attributes().Get("topic"); p.DoubleValue() != 3 || v.Str() != "app" || !m.Sum().IsMonotonic() || m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityCumulative || m.Description() != "Counts." {
				t.Errorf("%v", p.DoubleValue())
			}
			if p.StartTimestamp() == 0 || p.StartTimestamp() > p.Timestamp() {
				t.Errorf("from %s to %s", p.StartTimestamp(), p.Timestamp())
			}
		case "g":
			if v := m.Gauge().DataPoints().At(0).DoubleValue(); v != -2.5 {
				t.Error(v)
			}
		case "h_seconds":
			p := m.Histogram().DataPoints().At(0)
			counts, bounds := p.BucketCounts().AsRaw(), p.ExplicitBounds().AsRaw()
			if len(counts) != 3 || counts[0] != 1 || counts[1] != 2 || counts[2] != 1 || len(bounds) != 2 || p.Count() != 4 || p.Sum() != 12.6 {
				t.Errorf("%v within %v, %d in all, %v", counts, bounds, p.Count(), p.Sum())
			}
		}
	}
	if len(seen) != 3 {
		t.Error(seen)
	}
}

// TestExportAway holds that what cannot be read or posted is told.
func TestExportAway(t *testing.T) {
	t.Parallel()
	why := errors.New("no numbers")
	e := Exporter{URL: "http://127.0.0.1:1", Gather: func(context.Context) ([]*dto.MetricFamily, error) { return nil, why }}
	if err := e.post(t.Context(), e.client(), time.Now(), wait); !errors.Is(err, why) {
		t.Error(err)
	}
	name := "x"
	e.Gather = func(context.Context) ([]*dto.MetricFamily, error) { return []*dto.MetricFamily{{Name: &name}}, nil }
	if err := e.post(t.Context(), e.client(), time.Now(), wait); err == nil {
		t.Error("a port at which nothing listens took it")
	}
}
