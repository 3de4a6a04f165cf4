package alerttest

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// gone is the sample of a series that is no longer there.
var gone = math.Float64frombits(value.StaleNaN)

// engine reads expressions with the defaults of Prometheus.
var engine = promql.NewEngine(promql.EngineOpts{
	MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: Parser(),
	NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
})

// Samples are those of scrapes, in memory. The zero value is empty. It is safe for concurrent use.
type Samples struct {
	mu  sync.Mutex
	all map[string]*series
	// there are the series of each target's last scrape.
	there map[string]map[string]bool
}

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// Add adds one sample.
func (s *Samples) Add(of labels.Labels, at time.Time, v float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(of, at, v)
}

func (s *Samples) add(of labels.Labels, at time.Time, v float64) {
	key := of.String()
	one := s.all[key]
	if one == nil {
		if s.all == nil {
			s.all = map[string]*series{}
		}
		one = &series{labels: of}
		s.all[key] = one
	}
	one.samples = append(one.samples, sample{at.UnixMilli(), v})
}

// Scrape adds a page of a target: its samples, up, and that what it no longer has is no longer there. A nil page is that of
// a target that did not answer.
func (s *Samples) Scrape(instance string, page io.Reader, at time.Time) (map[string]*dto.MetricFamily, error) {
	var found map[string]*dto.MetricFamily
	up := 0.0
	if page != nil {
		up = 1
		p := expfmt.NewTextParser(model.UTF8Validation)
		var err error
		if found, err = p.TextToMetricFamilies(page); err != nil {
			return nil, fmt.Errorf("the page of %s: %w", instance, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]bool{}
	add := func(name string, v float64, pairs ...string) {
		b := labels.NewBuilder(labels.FromStrings(pairs...))
		of := b.Set(model.MetricNameLabel, name).Set("job", "almanac").Set("instance", instance).Labels()
		now[of.String()] = true
		s.add(of, at, v)
	}
	for name, f := range found {
		for _, m := range f.GetMetric() {
			addMetric(add, name, m)
		}
	}
	add("up", up)
	for key := range s.there[instance] {
		if !now[key] {
			s.all[key].samples = append(s.all[key].samples, sample{at.UnixMilli(), gone})
		}
	}
	if s.there == nil {
		s.there = map[string]map[string]bool{}
	}
	s.there[instance] = now
	return found, nil
}

// addMetric adds the series of one metric.
func addMetric(add func(name string, v float64, pairs ...string), name string, m *dto.Metric) {
	var pairs []string
	for _, l := range m.GetLabel() {
		pairs = append(pairs, l.GetName(), l.GetValue())
	}
	switch {
	case m.GetHistogram() != nil:
		h := m.GetHistogram()
		for _, b := range h.GetBucket() {
			add(name+"_bucket", float64(b.GetCumulativeCount()), append(slices.Clone(pairs), "le", fmt.Sprint(b.GetUpperBound()))...)
		}
		add(name+"_sum", h.GetSampleSum(), pairs...)
		add(name+"_count", float64(h.GetSampleCount()), pairs...)
	case m.GetSummary() != nil:
		add(name+"_sum", m.GetSummary().GetSampleSum(), pairs...)
		add(name+"_count", float64(m.GetSummary().GetSampleCount()), pairs...)
	default:
		add(name, m.GetGauge().GetValue()+m.GetCounter().GetValue()+m.GetUntyped().GetValue(), pairs...)
	}
}

// Eval returns what an expression is at a time.
func (s *Samples) Eval(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	q, err := engine.NewInstantQuery(ctx, s, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return nil, r.Err
	}
	switch v := r.Value.(type) {
	case promql.Vector:
		return slices.Clone(v), nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	}
	return nil, fmt.Errorf("%s is a %s", expr, r.Value.Type())
}

// Querier makes Samples what the engine reads.
func (s *Samples) Querier(mint, maxt int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		s.mu.Lock()
		defer s.mu.Unlock()
		var found []storage.Series
		for _, one := range s.all {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
				within := slices.DeleteFunc(slices.Clone(one.samples), func(p chunks.Sample) bool { return p.T() < mint || p.T() > maxt })
				found = append(found, storage.NewListSeries(one.labels, within))
			}
		}
		slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
		return &set{all: found}
	}}, nil
}

// set is a storage.SeriesSet.
type set struct {
	all []storage.Series
	at  storage.Series
}

func (s *set) Next() bool {
	if len(s.all) == 0 {
		return false
	}
	s.at, s.all = s.all[0], s.all[1:]
	return true
}

func (s *set) At() storage.Series                { return s.at }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// sample is a chunks.Sample of a number.
type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// Names returns the names of all series.
func (s *Samples) Names() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]bool{}
	for _, one := range s.all {
		out[one.labels.Get(model.MetricNameLabel)] = true
	}
	return out
}
