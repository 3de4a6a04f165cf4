package otlp

import (
	"math"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/almanac-events/almanac/gateway/inputtest"
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

const sortsText = `
ts 2026-02-01T12:00:00.000000007Z
service api
type gauge
user_id t-1
  label.unit of an attribute
  label.service of an attribute
  n 5
  resource.host.name h1
  scope.name lib
  points gauge
  unit By
  value:int 42

ts 2026-02-01T12:00:00.000000007Z
service api
type gauge
user_id t-1
  resource.host.name h1
  scope.name lib
  points stale
  unit By
  value:float 0

ts 2026-02-01T12:00:00.000000007Z
service api
type gauge
user_id t-1
  resource.host.name h1
  scope.name lib
  points +inf
  unit By
  value:float 0

ts 2026-02-01T12:00:00.000000007Z
service api
type counter
user_id t-1
  resource.host.name h1
  scope.name lib
  points cumulative
  start:time 2026-02-01T11:00:00.000000007Z
  value:float 1.5

ts 2026-02-01T12:00:00.000000007Z
service api
type updown
user_id t-1
  resource.host.name h1
  scope.name lib
  points gauge
  start:time 2026-02-01T11:00:00.000000007Z
  value:float 1.5

ts 2026-02-01T12:00:00.000000007Z
service api
type added
user_id t-1
  resource.host.name h1
  scope.name lib
  points delta
  start:time 2026-02-01T11:00:00.000000007Z
  value:float 1.5

ts 2026-02-01T12:00:00.000000007Z
service api
type histogram
user_id t-1
  resource.host.name h1
  scope.name lib
  points cumulative
  count:int 4
  sum:float 14
  min:float 0
  max:float 8
  m2:float 13
  buckets {"bounds":[2,4,8],"counts":[1,2,1,0]}

ts 2026-02-01T12:00:00.000000007Z
service api
type histogram
user_id t-1
  resource.host.name h1
  scope.name lib
  points cumulative
  count:int 0
  sum:float 0
  min:float 0
  max:float 0
  m2:float 0
  buckets {"bounds":[],"counts":[0]}

ts 2026-02-01T12:00:00.000000007Z
service api
type summary
user_id t-1
  resource.host.name h1
  scope.name lib
  points cumulative
  count:int 10
  sum:float 20
  min:float 2
  max:float 2
  m2:float 0
  buckets {"bounds":[],"counts":[10]}

ts 2026-02-01T12:00:00.000000007Z
service api
type summary
user_id t-1
  quantile 0.5
  resource.host.name h1
  scope.name lib
  points gauge
  value:float 2
`

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
