package otlp

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// quantileLabel is the label of a summary's quantiles, as Prometheus names it.
const quantileLabel = "quantile"

// distribution is what a point stands for in place of one value.
type distribution struct {
	count         uint64
	buckets       schemas.Buckets
	sum, min, max option
}

// option is a number that a client may leave out.
type option struct {
	value float64
	given bool
}

func (m *metric) histogram(p pmetric.HistogramDataPoint) ([]schemas.Event, error) {
	if p.Flags().NoRecordedValue() {
		return m.stale(p.Timestamp(), p.StartTimestamp(), p.Attributes())
	}
	d := distribution{
		count: p.Count(), sum: option{p.Sum(), p.HasSum()}, min: option{p.Min(), p.HasMin()}, max: option{p.Max(), p.HasMax()},
		buckets: schemas.Buckets{Bounds: p.ExplicitBounds().AsRaw(), Counts: p.BucketCounts().AsRaw()},
	}
	return m.distribution(&d, p.Timestamp(), p.StartTimestamp(), p.Attributes())
}

func (m *metric) exponential(p pmetric.ExponentialHistogramDataPoint) ([]schemas.Event, error) {
	if p.Flags().NoRecordedValue() {
		return m.stale(p.Timestamp(), p.StartTimestamp(), p.Attributes())
	}
	if s := p.Scale(); s < -maxScale || s > maxScale {
		return nil, fmt.Errorf("%w: metric %.80q has a histogram of scale %d; it must be -%d to %d", ErrPoint, m.name, s, maxScale, maxScale)
	}
	d := distribution{count: p.Count(), sum: option{p.Sum(), p.HasSum()}, min: option{p.Min(), p.HasMin()}, max: option{p.Max(), p.HasMax()}}
	d.buckets = explicit(p.Scale(), side{p.Positive().Offset(), p.Positive().BucketCounts().AsRaw()}, side{p.Negative().Offset(), p.Negative().BucketCounts().AsRaw()}, p.ZeroThreshold(), p.ZeroCount())
	return m.distribution(&d, p.Timestamp(), p.StartTimestamp(), p.Attributes())
}

// summary is a distribution without buckets, and a gauge for each quantile.
func (m *metric) summary(p pmetric.SummaryDataPoint) ([]schemas.Event, error) {
	if p.Flags().NoRecordedValue() {
		return m.stale(p.Timestamp(), p.StartTimestamp(), p.Attributes())
	}
	d := distribution{count: p.Count(), sum: option{p.Sum(), true}}
	for i := range p.QuantileValues().Len() {
		switch q := p.QuantileValues().At(i); q.Quantile() {
		case 0:
			d.min = option{q.Value(), true}
		case 1:
			d.max = option{q.Value(), true}
		}
	}
	events, err := m.distribution(&d, p.Timestamp(), p.StartTimestamp(), p.Attributes())
	for i := 0; i < p.QuantileValues().Len() && err == nil; i++ {
		q := p.QuantileValues().At(i)
		value, word := kinds.Number(q.Value())
		points := kinds.PointsGauge
		if word != "" {
			points = word
		}
		attrs := pcommon.NewMap()
		p.Attributes().CopyTo(attrs)
		attrs.PutStr(quantileLabel, strconv.FormatFloat(q.Quantile(), 'g', -1, 64))
		var one []schemas.Event
		one, err = m.event(p.Timestamp(), p.StartTimestamp(), attrs, points, schemas.Float64(kinds.ColValue, value))
		events = append(events, one...)
	}
	return events, err
}

func (m *metric) distribution(d *distribution, at, start pcommon.Timestamp, attrs pcommon.Map) ([]schemas.Event, error) {
	if d.count > kinds.MaxExact {
		return nil, fmt.Errorf("%w: metric %.80q has a distribution of %d values, the limit is %d", ErrPoint, m.name, d.count, int64(kinds.MaxExact))
	}
	if len(d.buckets.Counts) == 0 { // its count alone is known
		d.buckets = schemas.Buckets{Counts: []uint64{d.count}}
	}
	if d.buckets.Bounds == nil {
		d.buckets.Bounds = []float64{}
	}
	m2 := d.complete()
	text, err := json.Marshal(d.buckets)
	if err != nil {
		return nil, fmt.Errorf("%w: metric %.80q has a bound that is not finite", ErrPoint, m.name)
	}
	return m.event(at, start, attrs, m.points, schemas.Int64(kinds.ColCount, int64(d.count)), schemas.Float64(kinds.ColSum, d.sum.value), schemas.Float64(kinds.ColMin, d.min.value),
		schemas.Float64(kinds.ColMax, d.max.value), schemas.Float64(kinds.ColM2, m2), schemas.String(kinds.ColBuckets, string(text)))
}

// complete estimates from the buckets what a client left out of least, greatest and sum, and
// returns the sum of squared deviations, which the protocol does not have. The values of a bucket
// count as its middle.
func (d *distribution) complete() (m2 float64) {
	if d.count == 0 {
		d.sum, d.min, d.max = option{}, option{}, option{}
		return 0
	}
	bounds, counts := d.buckets.Bounds, d.buckets.Counts
	if len(counts) != len(bounds)+1 {
		return 0 // the rules of the topic refuse it
	}
	if len(bounds) == 0 {
		mean := d.sum.value / float64(d.count)
		if !d.min.given {
			d.min.value = mean
		}
		if !d.max.given {
			d.max.value = mean
		}
		return 0
	}
	first, last := 0, len(counts)-1
	for first < last && counts[first] == 0 {
		first++
	}
	for last > first && counts[last] == 0 {
		last--
	}
	if !d.min.given {
		d.min.value = lowerOf(bounds, first)
	}
	if !d.max.given {
		d.max.value = bounds[min(last, len(bounds)-1)]
	}
	d.max.value = max(d.max.value, d.min.value)
	middle := func(i int) float64 {
		low, high := max(lowerOf(bounds, i), d.min.value), d.max.value
		if i < len(bounds) {
			high = min(high, bounds[i])
		}
		return low/2 + max(low, high)/2
	}
	if !d.sum.given {
		for i, n := range counts {
			d.sum.value += float64(n) * middle(i)
		}
	}
	mean := d.sum.value / float64(d.count)
	for i, n := range counts {
		off := middle(i) - mean
		m2 += float64(n) * off * off
	}
	if math.IsInf(m2, 0) || math.IsNaN(m2) {
		return 0
	}
	return m2
}

// lowerOf is where a bucket begins; the first one at 0 when its end is above, as Prometheus has
// it, else at its own end: it has no lower bound, so it gets no width. bounds is not empty.
func lowerOf(bounds []float64, i int) float64 {
	switch {
	case i > 0:
		return bounds[i-1]
	case bounds[0] > 0:
		return 0
	}
	return bounds[0]
}
