package otlp

import (
	"bytes"
	"fmt"
	"math"
	"slices"
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

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
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
	if code, _, body = post(t, srv.URL+"/v1/metrics", typeProto, wide(t, 10_000, false), "Idempotency-Key", "wide"); code != 413 || !bytes.Contains(body, []byte("send fewer at once")) {
		t.Fatalf("a request whose labels are too much: %d %s", code, body)
	}
	if code, _, body = post(t, srv.URL+"/v1/metrics", typeProto, wide(t, 20_000, true)); code != 413 || !bytes.Contains(body, []byte("send fewer at once")) {
		t.Fatalf("a request whose series are too much: %d %s", code, body)
	}
}

// Data points of series that the pool knows are stored as those of a request with a key, which become events each.
func TestKnownSeries(t *testing.T) {
	t.Parallel()
	e, _, srv := serve(t)
	odd := pmetric.NewMetrics()
	rm := odd.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("user.id", "t-1")
	for i, put := range []func(pcommon.Map){
		func(m pcommon.Map) {}, func(m pcommon.Map) { m.PutStr("a", "1") }, func(m pcommon.Map) { m.PutInt("a", 1) }, func(m pcommon.Map) { m.PutDouble("a", 1) },
		func(m pcommon.Map) { m.PutBool("a", true) }, func(m pcommon.Map) { m.PutEmpty("a") }, func(m pcommon.Map) { m.PutEmptyMap("a").PutStr("b", "c") },
		func(m pcommon.Map) { m.PutEmptySlice("a").AppendEmpty().SetInt(1) }, func(m pcommon.Map) { m.PutEmptyBytes("a").Append(1, 2) },
		func(m pcommon.Map) { m.PutStr("user.id", "t-2") }, func(m pcommon.Map) { m.PutStr("a", "\xff") }, func(m pcommon.Map) { m.PutStr(strings.Repeat("x", 300), "1") },
		func(m pcommon.Map) { m.PutStr("ab", "c") }, func(m pcommon.Map) { m.PutStr("a", "bc") },
	} {
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("odd")
		list := m.SetEmptyGauge().DataPoints()
		for n, value := range []float64{1, math.NaN(), math.Inf(-1), 2} {
			p := list.AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(i))))
			p.SetDoubleValue(value)
			if n == 3 {
				p.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(-time.Hour)))
			}
			put(p.Attributes())
		}
	}
	rounded := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	rounded.SetName("rounded")
	for _, n := range []int64{0, -5, 1 << 53, 1<<62 + 1} {
		p := rounded.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetIntValue(n)
	}
	body := func(req pmetricotlp.ExportRequest) []byte {
		raw, err := req.MarshalProto()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, body := range map[string][]byte{
		"every sort": body(sorts(true)), "odd": body(pmetricotlp.NewExportRequestFromMetrics(odd)), "recorded": inputtest.Recorded(t, "telemetrygen-metrics-otlp-http.1").Body,
	} {
		n := len(e.Events("metrics"))
		var all [3][]string
		for i, headers := range [][]string{{"Idempotency-Key", name}, nil, nil} {
			code, _, answer := post(t, srv.URL+"/v1/metrics", typeProto, body, headers...)
			if code != 200 {
				t.Fatalf("%s: %d %s", name, code, answer)
			}
			events := e.Events("metrics")
			for k := range events[n:] {
				ev := events[n+k]
				ev.ID = schemas.ID{}
				all[i] = append(all[i], fmt.Sprintf("%+v", ev))
			}
			n = len(events)
			all[i] = append(all[i], fmt.Sprintf("%x", answer))
		}
		for i := range all {
			slices.Sort(all[i]) // lanes are frames of their own
		}
		if len(all[0]) < 3 || !slices.Equal(all[1], all[0]) || !slices.Equal(all[2], all[0]) {
			t.Errorf("%s: by events\n%s\nby series\n%s\nagain\n%s", name, strings.Join(all[0], "\n"), strings.Join(all[1], "\n"), strings.Join(all[2], "\n"))
		}
	}
}

// wide is a small request whose points have many labels of their resource, and with own a series each.
func wide(t *testing.T, points int, own bool) []byte {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	for i := range 200 {
		rm.Resource().Attributes().PutStr(fmt.Sprint("a", i), "x")
	}
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("wide")
	list := m.SetEmptyGauge().DataPoints()
	for i := range points {
		p := list.AppendEmpty()
		if own {
			p.Attributes().PutInt("n", int64(i))
		}
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
