package otlp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// What is good is stored, what is not is counted, and a topic is chosen as for logs.
func TestMetricsOverHTTP(t *testing.T) {
	t.Parallel()
	e, _, srv := serve(t)
	good, _ := sorts(false).MarshalProto()
	for range 2 { // a second time it is a second row of each series and instant
		if code, _, body := post(t, srv.URL+"/v1/metrics", typeProto, good); code != 200 || len(body) != 0 {
			t.Fatalf("%d %s", code, body)
		}
	}
	if n := len(e.Events("metrics")); n != 20 {
		t.Fatalf("%d events are stored, want 20", n)
	}
	some, _ := sorts(true).MarshalJSON()
	code, h, body := post(t, srv.URL+"/v1/metrics", typeJSON, some, TopicKey, "metrics")
	resp := pmetricotlp.NewExportResponse()
	if err := resp.UnmarshalJSON(body); err != nil || code != 200 || h.Get("Content-Type") != typeJSON {
		t.Fatalf("%d %s %v", code, body, err)
	}
	if ps := resp.PartialSuccess(); ps.RejectedDataPoints() != 5 || !strings.Contains(ps.ErrorMessage(), `5 of 14 data points are refused; the first: bad data point: metric "no value" has a data point without a value`) {
		t.Fatalf("%d %q", ps.RejectedDataPoints(), ps.ErrorMessage())
	}
	if n := len(e.Events("metrics")); n != 30 {
		t.Fatalf("%d events are stored, want 30", n)
	}
	for range 2 {
		code, _, body = post(t, srv.URL+"/t/metrics/v1/metrics", typeProto, good, "Idempotency-Key", "k")
	}
	if err := resp.UnmarshalProto(body); err != nil || code != 200 || !strings.Contains(resp.PartialSuccess().ErrorMessage(), "counted once") {
		t.Fatalf("under a key again: %d %s %v", code, body, err)
	}
	if n := len(e.Events("metrics")); n != 40 {
		t.Fatalf("%d events are stored, want 40", n)
	}
	if code, _, body = post(t, srv.URL+"/v1/metrics", typeProto, wide(t)); code != 413 || !bytes.Contains(body, []byte("send fewer at once")) {
		t.Fatalf("a request whose labels are too much: %d %s", code, body)
	}
}

// wide is a small request whose points have many labels of their resource.
func wide(t *testing.T) []byte {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	for i := range 200 {
		rm.Resource().Attributes().PutStr(fmt.Sprint("a", i), "x")
	}
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("wide")
	list := m.SetEmptyGauge().DataPoints()
	for i := range 10_000 {
		p := list.AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(i))))
		p.SetIntValue(1)
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestMetricsOverGRPC(t *testing.T) {
	t.Parallel()
	e, in, _ := serve(t)
	nc := dial(t, in.NewGRPC(nil))
	client := pmetricotlp.NewGRPCClient(nc)
	resp, err := client.Export(t.Context(), sorts(true), grpc.UseCompressor("gzip"))
	if err != nil || resp.PartialSuccess().RejectedDataPoints() != 5 || len(e.Events("metrics")) != 10 {
		t.Fatalf("%v, %d rejected, %d stored", err, resp.PartialSuccess().RejectedDataPoints(), len(e.Events("metrics")))
	}
	for topic, code := range map[string]codes.Code{"app": codes.InvalidArgument, "nope": codes.NotFound, "metrics": codes.OK} {
		_, err := client.Export(metadata.AppendToOutgoingContext(t.Context(), TopicKey, topic), sorts(false))
		if status.Code(err) != code {
			t.Errorf("topic %s: %v", topic, err)
		}
	}
}
