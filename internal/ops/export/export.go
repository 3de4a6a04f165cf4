package export

import (
	"bytes"
	"context"
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
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 64 << 10
)

// Exporter posts the numbers of a process.
type Exporter struct {
	// URL of the endpoint, without /v1/metrics.
	URL string
	// Gather reads the numbers.
	Gather func(ctx context.Context) ([]*dto.MetricFamily, error)
	// Resource are the attributes that name the process.
	Resource map[string]string
	// OnPost hears of each post: why it failed, or nil.
	OnPost func(error)
	// Every is how far apart posts are.
	Every time.Duration
}

// Run posts until ctx ends.
func (e *Exporter) Run(ctx context.Context) error {
	began := time.Now()
	turn := time.NewTicker(e.Every)
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
		}
		if err := e.post(ctx, began); ctx.Err() == nil {
			e.OnPost(err)
		}
	}
}

func (e *Exporter) post(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
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
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := http.DefaultClient.Do(req)
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
