package export

import (
	"context"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// ended runs an exporter whose process ends before its first turn, and returns what became of its posts.
func ended(t *testing.T, url string, headers http.Header, roots *x509.CertPool, within time.Duration) (posts []error) {
	t.Helper()
	r := prometheus.NewRegistry()
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g", Help: "Is."})
	r.MustRegister(g)
	g.Set(7)
	e := Exporter{
		URL: url, Headers: headers, Roots: roots, Every: time.Hour, LastWait: within,
		Gather: func(context.Context) ([]*dto.MetricFamily, error) { return r.Gather() },
		OnPost: func(err error) { posts = append(posts, err) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Run(ctx); err != nil {
		t.Error(err)
	}
	if len(posts) != 1 {
		t.Fatalf("%d posts at the end: %v", len(posts), posts)
	}
	return posts
}

// At its end a process posts once more, with its headers, to an endpoint whose certificate the given CA signed, and to no other one.
func TestLastPost(t *testing.T) {
	t.Parallel()
	value, by := make(chan float64, 1), make(chan http.Header, 1)
	s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		of := pmetricotlp.NewExportRequest()
		if err != nil || of.UnmarshalProto(body) != nil {
			t.Errorf("no request of OTLP: %v", err)
			return
		}
		value <- of.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).DoubleValue()
		by <- req.Header
	}))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	headers := http.Header{"Authorization": {"Bearer hush"}, "X-Scope-Orgid": {"app"}}
	if err := ended(t, s.URL, headers, roots, time.Minute)[0]; err != nil {
		t.Fatal(err)
	}
	if v, h := <-value, <-by; v != 7 || h.Get("Authorization") != "Bearer hush" || h.Get("X-Scope-OrgID") != "app" || h.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("%v with %v", v, h)
	}
	if len(headers) != 2 {
		t.Errorf("the headers of the settings are now %v", headers)
	}
	if err := ended(t, s.URL, headers, x509.NewCertPool(), time.Minute)[0]; err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "hush") {
		t.Errorf("a certificate of another CA: %v", err)
	}
}

// An endpoint that sends on to another gets nothing sent there, and one that does not answer holds up no end.
func TestLastPostElsewhere(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer other.Close()
	hung := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/hung") {
			select {
			case <-hung:
			case <-req.Context().Done():
			}
			return
		}
		http.Redirect(w, req, other.URL, http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	defer close(hung)
	headers := http.Header{"Authorization": {"hush"}}
	if err := ended(t, s.URL, headers, nil, time.Minute)[0]; err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("a redirect: %v", err)
	}
	if err := ended(t, s.URL+"/hung", headers, nil, 50*time.Millisecond)[0]; err == nil {
		t.Error("an endpoint that does not answer took it")
	}
}
