package export

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

const (
	// Every is how far apart posts are: Prometheus' own default.
	Every = time.Minute
	// wait bounds one post with its reading.
	wait = 20 * time.Second
	// LastWait bounds the post at the end, for which the end of the process waits: a scrape takes up to 1.7 s while a server is away.
	LastWait = 4 * time.Second
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 64 << 10
)

// Exporter posts the numbers of a process.
type Exporter struct {
	// URL of the endpoint, without /v1/metrics.
	URL string
	// Headers of each post, such as what the endpoint asks of who sends.
	Headers http.Header
	// Roots are the CAs that may have signed the endpoint's certificate; nil: those of the system.
	Roots *x509.CertPool
	// Gather reads the numbers.
	Gather func(ctx context.Context) ([]*dto.MetricFamily, error)
	// Resource are the attributes that name the process.
	Resource map[string]string
	// OnPost hears of each post: why it failed, or nil.
	OnPost func(error)
	// Every is how far apart posts are.
	Every time.Duration
	// LastWait bounds the last post.
	LastWait time.Duration
}

// Run posts until ctx ends, and then once more what came since.
func (e *Exporter) Run(ctx context.Context) error {
	began := time.Now()
	turn := time.NewTicker(e.Every)
	defer turn.Stop()
	client := e.client()
	defer client.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			e.OnPost(e.post(context.WithoutCancel(ctx), client, began, e.LastWait))
			return nil
		case <-turn.C:
		}
		if err := e.post(ctx, client, began, wait); ctx.Err() == nil {
			e.OnPost(err)
		}
	}
}

// client follows no redirect: the headers are for this endpoint alone.
func (e *Exporter) client() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: e.Roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (e *Exporter) post(ctx context.Context, client *http.Client, began time.Time, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	families, err := e.Gather(ctx)
	if len(families) == 0 {
		return err
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(Metrics(families, e.Resource, began, time.Now())).MarshalProto()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(e.URL, "/")+"/v1/metrics", bytes.NewReader(body))
	if err != nil {
		return err
	}
	if e.Headers != nil {
		req.Header = e.Headers.Clone()
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s: %.200q", req.URL.Redacted(), resp.Status, answer)
	}
	of := pmetricotlp.NewExportResponse()
	if of.UnmarshalProto(answer) == nil && of.PartialSuccess().RejectedDataPoints() > 0 {
		return fmt.Errorf("%s refused %d points: %s", req.URL.Redacted(), of.PartialSuccess().RejectedDataPoints(), of.PartialSuccess().ErrorMessage())
	}
	return nil
}
