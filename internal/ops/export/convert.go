package export

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// point is what every kind of data point has.
type point interface {
	SetTimestamp(pcommon.Timestamp)
	SetStartTimestamp(pcommon.Timestamp)
	Attributes() pcommon.Map
}

// Metrics makes OTLP metrics of families. began is since when they count.
func Metrics(families []*dto.MetricFamily, resource map[string]string, began, now time.Time) pmetric.Metrics {
	out := pmetric.NewMetrics()
	r := out.ResourceMetrics().AppendEmpty()
	for k, v := range resource {
		r.Resource().Attributes().PutStr(k, v)
	}
	scope := r.ScopeMetrics().AppendEmpty()
	scope.Scope().SetName("almanac")
	start, at := pcommon.NewTimestampFromTime(began), pcommon.NewTimestampFromTime(now)
	for _, f := range families {
		m := scope.Metrics().AppendEmpty()
		m.SetName(f.GetName())
		m.SetDescription(f.GetHelp())
		add := adder(f.GetType(), m)
		for _, one := range f.GetMetric() {
			p := add(one)
			p.SetTimestamp(at)
			p.SetStartTimestamp(start)
			for _, l := range one.GetLabel() {
				p.Attributes().PutStr(l.GetName(), l.GetValue())
			}
		}
	}
	return out
}

// adder makes a metric one of a kind, and returns what adds a point to it.
func adder(kind dto.MetricType, m pmetric.Metric) func(*dto.Metric) point {
	switch kind {
	case dto.MetricType_COUNTER:
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return func(one *dto.Metric) point {
			p := sum.DataPoints().AppendEmpty()
			p.SetDoubleValue(one.GetCounter().GetValue())
			return p
		}
	case dto.MetricType_HISTOGRAM:
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return func(one *dto.Metric) point {
			p := h.DataPoints().AppendEmpty()
			buckets(p, one.GetHistogram())
			return p
		}
	case dto.MetricType_SUMMARY:
		s := m.SetEmptySummary()
		return func(one *dto.Metric) point {
			p := s.DataPoints().AppendEmpty()
			p.SetSum(one.GetSummary().GetSampleSum())
			p.SetCount(one.GetSummary().GetSampleCount())
			for _, q := range one.GetSummary().GetQuantile() {
				to := p.QuantileValues().AppendEmpty()
				to.SetQuantile(q.GetQuantile())
				to.SetValue(q.GetValue())
			}
			return p
		}
	default:
		g := m.SetEmptyGauge()
		return func(one *dto.Metric) point {
			p := g.DataPoints().AppendEmpty()
			p.SetDoubleValue(one.GetGauge().GetValue() + one.GetUntyped().GetValue())
			return p
		}
	}
}

// buckets fills a histogram: those of Prometheus count all below their bound, those of OTLP what is between two.
func buckets(p pmetric.HistogramDataPoint, h *dto.Histogram) {
	p.SetSum(h.GetSampleSum())
	p.SetCount(h.GetSampleCount())
	var below uint64
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		p.ExplicitBounds().Append(b.GetUpperBound())
		p.BucketCounts().Append(b.GetCumulativeCount() - below)
		below = b.GetCumulativeCount()
	}
	p.BucketCounts().Append(h.GetSampleCount() - below)
}
