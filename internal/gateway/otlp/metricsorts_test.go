package otlp

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
)

// sorts is a request with a data point of each sort. With bad it has some that are refused.
func sorts(bad bool) pmetricotlp.ExportRequest {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	for k, v := range map[string]string{"service.name": "api", "user.id": "t-1"} {
		rm.Resource().Attributes().PutStr(k, v)
	}
	rm.Resource().Attributes().PutEmptyMap("host").PutStr("name", "h1")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("lib")
	add := func(name string) pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		return m
	}
	stamp, start := pcommon.NewTimestampFromTime(at), pcommon.NewTimestampFromTime(at.Add(-time.Hour))
	number := func(p pmetric.NumberDataPoint) pmetric.NumberDataPoint {
		p.SetTimestamp(stamp)
		return p
	}
	gauge := add("gauge")
	gauge.SetUnit("By")
	list := gauge.SetEmptyGauge().DataPoints()
	p := number(list.AppendEmpty())
	p.SetIntValue(42)
	p.Attributes().PutStr("unit", "of an attribute")
	p.Attributes().PutStr("service", "of an attribute")
	p.Attributes().PutStr("empty", "")
	p.Attributes().PutInt("n", 5)
	p.Exemplars().AppendEmpty().SetIntValue(1)
	number(list.AppendEmpty()).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	number(list.AppendEmpty()).SetDoubleValue(math.Inf(1))

	for _, kind := range []struct {
		name      string
		monotonic bool
		t         pmetric.AggregationTemporality
	}{{"counter", true, pmetric.AggregationTemporalityCumulative}, {"updown", false, pmetric.AggregationTemporalityCumulative}, {"added", false, pmetric.AggregationTemporalityDelta}} {
		sum := add(kind.name).SetEmptySum()
		sum.SetIsMonotonic(kind.monotonic)
		sum.SetAggregationTemporality(kind.t)
		p = number(sum.DataPoints().AppendEmpty())
		p.SetStartTimestamp(start)
		p.SetDoubleValue(1.5)
	}
	h := add("histogram").SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	hp := h.DataPoints().AppendEmpty()
	hp.SetTimestamp(stamp)
	hp.SetCount(4)
	hp.SetSum(14)
	hp.ExplicitBounds().FromRaw([]float64{2, 4, 8})
	hp.BucketCounts().FromRaw([]uint64{1, 2, 1, 0})
	h.DataPoints().AppendEmpty().SetTimestamp(stamp) // of nothing
	s := add("summary").SetEmptySummary().DataPoints().AppendEmpty()
	s.SetTimestamp(stamp)
	s.SetCount(10)
	s.SetSum(20)
	for q, v := range map[float64]float64{0.5: 2} {
		one := s.QuantileValues().AppendEmpty()
		one.SetQuantile(q)
		one.SetValue(v)
	}
	if bad {
		number(add("no value").SetEmptyGauge().DataPoints().AppendEmpty())
		add("no time").SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
		number(add("unspecified").SetEmptySum().DataPoints().AppendEmpty()).SetIntValue(1)
		number(add("").SetEmptyGauge().DataPoints().AppendEmpty()).SetIntValue(1)
		wrong := add("wrong buckets").SetEmptyHistogram()
		wrong.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		wp := wrong.DataPoints().AppendEmpty()
		wp.SetTimestamp(stamp)
		wp.SetCount(2)
		wp.BucketCounts().FromRaw([]uint64{1})
	}
	return pmetricotlp.NewExportRequestFromMetrics(metrics)
}

// sortsText is what every sort gives, with what all of them have in common.
var sortsText = strings.Join([]string{
	pointText("gauge", []string{"label.unit of an attribute", "label.service of an attribute", "n 5"}, "points gauge", "unit By", "value:int 42"),
	pointText("gauge", nil, "points stale", "unit By", "value:float 0"),
	pointText("gauge", nil, "points +inf", "unit By", "value:float 0"),
	pointText("counter", nil, "points cumulative", "start:time 2026-02-01T11:00:00.000000007Z", "value:float 1.5"),
	pointText("updown", nil, "points gauge", "start:time 2026-02-01T11:00:00.000000007Z", "value:float 1.5"),
	pointText("added", nil, "points delta", "start:time 2026-02-01T11:00:00.000000007Z", "value:float 1.5"),
	pointText("histogram", nil, "points cumulative", "count:int 4", "sum:float 14", "min:float 0", "max:float 8", "m2:float 13", `buckets {"bounds":[2,4,8],"counts":[1,2,1,0]}`),
	pointText("histogram", nil, "points cumulative", "count:int 0", "sum:float 0", "min:float 0", "max:float 0", "m2:float 0", `buckets {"bounds":[],"counts":[0]}`),
	pointText("summary", nil, "points cumulative", "count:int 10", "sum:float 20", "min:float 2", "max:float 2", "m2:float 0", `buckets {"bounds":[],"counts":[10]}`),
	pointText("summary", []string{"quantile 0.5"}, "points gauge", "value:float 2"),
}, "\n")

// pointText is a point as inputtest.Text shows it: its own attributes, and what the topic's kind and
// the metric add.
func pointText(metric string, own []string, more ...string) string {
	lines := slices.Concat(own, []string{"resource.host.name h1", "scope.name lib"}, more)
	return "ts 2026-02-01T12:00:00.000000007Z\nservice api\ntype " + metric + "\nuser_id t-1\n  " + strings.Join(lines, "\n  ") + "\n"
}

// Both encodings of every sort of data point give the same points.
func TestEverySortOfPoint(t *testing.T) {
	t.Parallel()
	proto, err := sorts(false).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	inputtest.Same(t, points(t, proto, false), sortsText)
	asJSON, err := sorts(false).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	inputtest.Same(t, points(t, asJSON, true), sortsText)
}
