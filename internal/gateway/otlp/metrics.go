package otlp

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// MaxPoints bounds the data points of one request.
const MaxPoints = 100_000

// DecodeMetrics calls each with the events of every data point, or with why it is refused. A
// summary has an event for itself and one for each of its quantiles, every other point has
// one. It is pure. Its error says why the request cannot be read at all, or is that of each.
// A nil topic is one without fields and rules.
func DecodeMetrics(body []byte, isJSON bool, topic *schemas.Topic, each func(events []schemas.Event, err error) error) error {
	_, err := decodeMetrics(body, isJSON, topic, nil, each)
	return err
}

// changed counts what was changed in a request: points whose whole number was rounded, and exemplars that are
// left out for an id that is none.
type changed struct{ rounded, exemplars int }

// readMetrics reads a request, without the exemplars that the decoder would refuse all of it for.
func readMetrics(body []byte, isJSON bool) (all pmetric.Metrics, leftOut int, err error) {
	req := pmetricotlp.NewExportRequest()
	read := req.UnmarshalProto
	if isJSON {
		err, read = checkJSON(body), req.UnmarshalJSON
	} else {
		err = checkProto(body, metricsRequest)
	}
	if err != nil {
		return all, 0, err
	}
	if err = read(body); err == nil {
		return req.Metrics(), 0, nil
	}
	var kept []byte
	if isJSON {
		kept, leftOut = withoutBadExemplarsJSON(body)
	} else {
		kept, leftOut = withoutBadExemplars(body, exemplars)
	}
	if leftOut == 0 {
		return all, 0, err
	}
	again := pmetricotlp.NewExportRequest()
	if read = again.UnmarshalProto; isJSON {
		read = again.UnmarshalJSON
	}
	return again.Metrics(), leftOut, read(kept)
}

// decodeMetrics is DecodeMetrics, and counts what was changed. What k takes is not among the events.
func decodeMetrics(body []byte, isJSON bool, topic *schemas.Topic, k *known, each func(events []schemas.Event, err error) error) (did changed, err error) {
	metrics, leftOut, err := readMetrics(body, isJSON)
	if err != nil {
		return did, fmt.Errorf("%w: %w", ErrMetrics, err)
	}
	if n := metrics.DataPointCount(); n > MaxPoints {
		return did, fmt.Errorf("%w: %d, the limit is %d; send fewer at once", ErrManyPoints, n, MaxPoints)
	}
	first := topic.TakenFirst()
	for i := range metrics.ResourceMetrics().Len() {
		rm := metrics.ResourceMetrics().At(i)
		shared := source{first: first, labels: labels{attributes{topic: topic}}, known: k}
		shared.resource(rm.Resource())
		for j := range rm.ScopeMetrics().Len() {
			sm := rm.ScopeMetrics().At(j)
			both := shared.scope(sm.Scope())
			both.say()
			for l := range sm.Metrics().Len() {
				if err := decodeMetric(&both, sm.Metrics().At(l), each); err != nil {
					return did, err
				}
			}
		}
	}
	return changed{rounded(metrics), leftOut}, nil
}

// metric is what all data points of a metric have in common.
type metric struct {
	from       *source
	name, unit string
	points     string
	bad        error // why no data point of it can be taken
}

// decodeMetric calls each for every data point.
func decodeMetric(from *source, in pmetric.Metric, each func([]schemas.Event, error) error) error {
	m := metric{from: from, name: in.Name(), unit: in.Unit(), points: kinds.PointsGauge}
	n, one := 0, func(int) ([]schemas.Event, error) { return nil, nil }
	switch in.Type() {
	case pmetric.MetricTypeGauge:
		points := in.Gauge().DataPoints()
		n, one = points.Len(), func(i int) ([]schemas.Event, error) { return m.number(points.At(i)) }
	case pmetric.MetricTypeSum:
		points := in.Sum().DataPoints()
		n, one = points.Len(), func(i int) ([]schemas.Event, error) { return m.number(points.At(i)) }
		m.temporality(in.Sum().AggregationTemporality())
		if m.points == kinds.PointsCumulative && !in.Sum().IsMonotonic() {
			m.points = kinds.PointsGauge // a total that falls as well as it rises: a fall does not mean a reset
		}
	case pmetric.MetricTypeHistogram:
		points := in.Histogram().DataPoints()
		n, one = points.Len(), func(i int) ([]schemas.Event, error) { return m.histogram(points.At(i)) }
		m.temporality(in.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		points := in.ExponentialHistogram().DataPoints()
		n, one = points.Len(), func(i int) ([]schemas.Event, error) { return m.exponential(points.At(i)) }
		m.temporality(in.ExponentialHistogram().AggregationTemporality())
	case pmetric.MetricTypeSummary:
		points := in.Summary().DataPoints()
		n, one = points.Len(), func(i int) ([]schemas.Event, error) { return m.summary(points.At(i)) }
		m.points = kinds.PointsCumulative
	}
	for i := range n {
		events, err := one(i)
		if errors.Is(err, errTaken) {
			if from.known.err != nil {
				return from.known.err
			}
			continue
		}
		if m.bad != nil {
			err = m.bad
		}
		if err := each(events, err); err != nil {
			return err
		}
	}
	return nil
}

// temporality sets the kind of the points of a sum or histogram.
func (m *metric) temporality(t pmetric.AggregationTemporality) {
	switch t {
	case pmetric.AggregationTemporalityDelta:
		m.points = kinds.PointsDelta
	case pmetric.AggregationTemporalityCumulative:
		m.points = kinds.PointsCumulative
	default:
		m.bad = fmt.Errorf("%w: metric %.80q has the aggregation temporality %d; it must be delta (1) or cumulative (2)", ErrPoint, m.name, t)
	}
}

func (m *metric) number(p pmetric.NumberDataPoint) ([]schemas.Event, error) {
	if p.Flags().NoRecordedValue() {
		return m.stale(p.Timestamp(), p.StartTimestamp(), p.Attributes())
	}
	var value schemas.Attr
	points := m.points
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		if m.from.known.take(m, p.Timestamp(), p.StartTimestamp(), p.Attributes(), float64(p.IntValue()), "") {
			return nil, errTaken
		}
		value = wholeValue(p.IntValue())
	case pmetric.NumberDataPointValueTypeDouble:
		number, word := kinds.Number(p.DoubleValue())
		if m.from.known.take(m, p.Timestamp(), p.StartTimestamp(), p.Attributes(), number, word) {
			return nil, errTaken
		}
		value, points = schemas.Float64(kinds.ColValue, number), cmp.Or(word, points)
	default:
		return nil, fmt.Errorf("%w: metric %.80q has a data point without a value", ErrPoint, m.name)
	}
	return m.event(p.Timestamp(), p.StartTimestamp(), p.Attributes(), points, value)
}

// wholeValue is a whole number as the column of floating-point numbers has it: the nearest one
// that a float64 has, as the same number given as a double. A counter of nanoseconds passes 2^53
// after 104 days, and does not end then.
func wholeValue(n int64) schemas.Attr {
	if n >= -kinds.MaxExact && n <= kinds.MaxExact {
		return schemas.Int64(kinds.ColValue, n)
	}
	return schemas.Float64(kinds.ColValue, float64(n))
}

// rounded counts the points of a request whose whole number was rounded to a float64.
func rounded(all pmetric.Metrics) (n int) {
	count := func(points pmetric.NumberDataPointSlice) {
		for i := range points.Len() {
			p := points.At(i)
			if v := p.IntValue(); p.ValueType() == pmetric.NumberDataPointValueTypeInt && !p.Flags().NoRecordedValue() && (float64(v) >= 1<<63 || int64(float64(v)) != v) {
				n++
			}
		}
	}
	for _, rm := range all.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					count(m.Gauge().DataPoints())
				case pmetric.MetricTypeSum:
					count(m.Sum().DataPoints())
				}
			}
		}
	}
	return n
}

// stale ends a series until its next point.
func (m *metric) stale(at, start pcommon.Timestamp, attrs pcommon.Map) ([]schemas.Event, error) {
	return m.event(at, start, attrs, kinds.PointsStale, schemas.Float64(kinds.ColValue, 0))
}

// labelled is a point of the metric without time, value and start. word is the kind of points that stands for what is not a
// number, or "".
func (m *metric) labelled(attrs pcommon.Map, word string) (schemas.Event, error) {
	events, err := m.event(1, 0, attrs, cmp.Or(word, m.points))
	if err != nil {
		return schemas.Event{}, err
	}
	return events[0], nil
}

// event is a point of the metric with some of its columns.
func (m *metric) event(at, start pcommon.Timestamp, attrs pcommon.Map, points string, columns ...schemas.Attr) ([]schemas.Event, error) {
	switch {
	case at == 0:
		return nil, fmt.Errorf("%w: metric %.80q has a data point without a time", ErrPoint, m.name)
	case at > math.MaxInt64 || start > math.MaxInt64:
		return nil, fmt.Errorf("%w: a time of %d ns is after the year 2261", schemas.ErrTimeTooFarAhead, max(at, start))
	}
	ev := schemas.Event{Time: at.AsTime(), Type: m.name, Service: m.from.service, UserID: m.from.user}
	own := labels{attributes{topic: m.from.labels.topic, list: make([]schemas.Attr, 0, attrs.Len()+len(m.from.labels.list)+len(columns)+3)}}
	ownUser := false
	for name, v := range attrs.All() {
		switch {
		case isUser(name) && !ownUser:
			ev.UserID, ownUser = v.AsString(), true
		default:
			own.add(name, v)
		}
	}
	if ownUser && m.from.user != "" && m.from.user != ev.UserID {
		own.text("resource."+schemas.ColUserID, m.from.user)
	}
	own.join(&m.from.labels.attributes)
	ev.Attrs = append(own.done(m.from.first), schemas.String(kinds.ColPoints, points))
	if m.unit != "" {
		ev.Attrs = append(ev.Attrs, schemas.String(kinds.ColUnit, m.unit))
	}
	if start != 0 {
		ev.Attrs = append(ev.Attrs, schemas.Time(kinds.ColStart, start.AsTime()))
	}
	ev.Attrs = append(ev.Attrs, columns...)
	return []schemas.Event{ev}, nil
}
