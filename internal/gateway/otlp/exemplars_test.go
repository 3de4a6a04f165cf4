package otlp

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/almanac-events/almanac/schemas"
)

// exemplified are four points of different sorts, each with a good and a bad exemplar: the bad ones have a byte
// less of their trace ids in one of the two encodings.
func exemplified(t *testing.T, isJSON bool) []byte {
	t.Helper()
	metrics := pmetric.NewMetrics()
	list := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	at := pcommon.NewTimestampFromTime(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	trace := pcommon.TraceID([]byte("GOOD-TRACE-ID-16"))
	bad := pcommon.TraceID([]byte("BADD-TRACE-ID-16"))
	add := func(s pmetric.ExemplarSlice) {
		for _, id := range []pcommon.TraceID{trace, bad} {
			e := s.AppendEmpty()
			e.SetIntValue(1)
			e.SetTraceID(id)
		}
	}
	named := func(name string) pmetric.Metric {
		m := list.AppendEmpty()
		m.SetName(name)
		return m
	}
	gauge := named("g").SetEmptyGauge().DataPoints().AppendEmpty()
	gauge.SetTimestamp(at)
	gauge.SetDoubleValue(1)
	add(gauge.Exemplars())
	s := named("s").SetEmptySum()
	s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	sum := s.DataPoints().AppendEmpty()
	sum.SetTimestamp(at)
	sum.SetDoubleValue(1)
	add(sum.Exemplars())
	h := named("h").SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	histogram := h.DataPoints().AppendEmpty()
	histogram.SetTimestamp(at)
	histogram.SetCount(0)
	add(histogram.Exemplars())
	x := named("x").SetEmptyExponentialHistogram()
	x.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	exponential := x.DataPoints().AppendEmpty()
	exponential.SetTimestamp(at)
	add(exponential.Exemplars())
	req := pmetricotlp.NewExportRequestFromMetrics(metrics)
	if isJSON {
		body, err := req.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return bytes.ReplaceAll(body, []byte(bad.String()), []byte(bad.String()[2:]))
	}
	body, err := req.MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	// A trace id of 16 bytes becomes one of 8 and an unknown field of 6 bytes with its tag and length.
	return bytes.ReplaceAll(body, append([]byte{5<<3 | 2, 16}, bad[:]...), append([]byte{5<<3 | 2, 8, 1, 2, 3, 4, 5, 6, 7, 8, 15<<3 | 2, 6}, make([]byte, 6)...))
}

// TestBadExemplars leaves out exemplars whose ids are none, and never their points.
func TestBadExemplars(t *testing.T) {
	t.Parallel()
	for name, isJSON := range map[string]bool{"JSON": true, "protobuf": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := exemplified(t, isJSON)
			n := 0
			did, err := decodeMetrics(body, isJSON, nil, nil, func(_ []schemas.Event, err error) error {
				if n++; err != nil {
					t.Error(err)
				}
				return nil
			})
			if err != nil || n != 4 || did.exemplars != 4 || !strings.HasPrefix(did.said(), "4 exemplars") {
				t.Errorf("%d points, %+v, %v", n, did, err)
			}
			metrics, _, err := readMetrics(body, isJSON)
			if err != nil {
				t.Fatal(err)
			}
			kept := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Exemplars()
			if kept.Len() != 1 || kept.At(0).TraceID() != pcommon.TraceID([]byte("GOOD-TRACE-ID-16")) {
				t.Errorf("%d exemplars are left of the first point", kept.Len())
			}
			if _, err := decodeMetrics(body[:len(body)-3], isJSON, nil, nil, func([]schemas.Event, error) error { return nil }); err == nil {
				t.Error("a request that is cut short was taken")
			}
		})
	}
}
