package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// querier reads one topic for one query, between two instants in Unix milliseconds, both
// inclusive.
type querier struct {
	s        *Store
	topic    string
	from, to int64
	held     atomic.Int64 // points, until Close

	// growth is how many times as long the query makes labels, text what it adds to each.
	growth, text int

	mu    sync.Mutex
	found map[string]*set // what was selected, by the selector: a query may have the same one many times
}

// Close gives back the room of the points.
func (q *querier) Close() error {
	q.s.held.Add(-q.held.Swap(0))
	return nil
}

// chunk is how many points a querier takes room for at once.
const chunk = 4096

// pointBytes is the room of a point.
const pointBytes = 16

// take takes room for n points.
func (q *querier) take(ctx context.Context, n int64) error {
	if err := budget.Of(ctx).Take(n * pointBytes); err != nil {
		return err
	}
	if q.s.held.Add(n) > q.s.limit {
		q.s.held.Add(-n)
		return tooMany(q.s.limit)
	}
	q.held.Add(n)
	return nil
}

// spaceOf is the room of series themselves, in points: labels, and what holds a series. A
// query may select the same ones many times, and each selector holds its own.
func (q *querier) spaceOf(found []labelled) int64 {
	const held = 256
	bytes := 0
	for i := range found {
		named := q.text
		found[i].labels.Range(func(l labels.Label) { named += len(l.Name) + len(l.Value) })
		bytes += held + named*max(1, q.growth)
	}
	return int64(bytes / pointBytes)
}

// Select implements storage.Querier.
func (q *querier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	from, to := q.from, q.to
	if hints != nil {
		from, to = hints.Start, hints.End
	}
	name := fmt.Sprint(from, to, hints != nil && hints.Func == labelsOnly, matchers)
	q.mu.Lock()
	defer q.mu.Unlock()
	whole := q.found[name]
	if whole == nil {
		var err error
		if whole, err = q.read(ctx, hints, from, to, matchers); err != nil {
			return storage.ErrSeriesSet(err)
		}
		if q.found == nil {
			q.found = map[string]*set{}
		}
		q.found[name] = whole
	}
	if err := whole.visited(hints, from, to); err != nil {
		return storage.ErrSeriesSet(err)
	}
	return whole.again(sorted)
}

// read reads what a selector finds.
func (q *querier) read(ctx context.Context, hints *storage.SelectHints, from, to int64, matchers []*labels.Matcher) (*set, error) {
	found, err := q.s.find(ctx, q.topic, from, to, matchers)
	if err != nil {
		return nil, err
	}
	if err := q.take(ctx, q.spaceOf(found)); err != nil {
		return nil, err
	}
	set := newSet(found)
	if hints == nil || hints.Func != labelsOnly {
		err = q.load(ctx, set, found, from, to)
	}
	return set, err
}

// labelled is a series with its labels.
type labelled struct {
	series.Keyed
	labels labels.Labels
}

// find reads the series that may have points between two instants, and that all matchers match.
func (s *Store) find(ctx context.Context, topic string, from, to int64, matchers []*labels.Matcher) ([]labelled, error) {
	req := series.ListRequest{Topic: topic, From: after(from).Add(1), To: upTo(to).Add(1)}
	for _, m := range matchers {
		if m.Name == nameLabel && m.Type == labels.MatchEqual {
			if m.Value == "" {
				return nil, nil // every point has a metric
			}
			req.Metric = m.Value
		}
	}
	if !req.From.Before(req.To) {
		return nil, nil
	}
	all, err := s.series.All(ctx, req)
	if err != nil {
		return nil, err
	}
	return match(ctx, all, matchers)
}

// match returns the series that all matchers match, with their labels.
func match(ctx context.Context, all []series.Keyed, matchers []*labels.Matcher) (found []labelled, err error) {
	b := labels.NewBuilder(labels.EmptyLabels())
	for i := range all {
		if err := ctx.Err(); err != nil { // a regular expression may take milliseconds
			return nil, err
		}
		if !mayMatch(&all[i].Series, matchers) {
			continue
		}
		l := labelsOf(&all[i].Series, b)
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) }) {
			found = append(found, labelled{all[i], l})
		}
	}
	return found, nil
}

// mayMatch reports whether a series has each value that a matcher names, whatever the label is called. It spares making
// the labels of a thousand series where one is asked for.
func mayMatch(s *series.Series, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if m.Type != labels.MatchEqual || m.Value == "" || m.Value == s.Metric || m.Value == s.Service || m.Value == s.Tenant {
			continue
		}
		has := false
		for _, v := range s.Labels {
			has = has || v == m.Value
		}
		if !has {
			return false
		}
	}
	return true
}

// nameLabel has the metric.
const nameLabel = "__name__"

// after and upTo are the bounds of a read that begins and ends with a millisecond.
func after(ms int64) time.Time { return time.Unix(0, bounded(ms)*int64(time.Millisecond)-1) }

func upTo(ms int64) time.Time {
	return time.Unix(0, bounded(ms)*int64(time.Millisecond)+int64(time.Millisecond)-1)
}

// bounded keeps an instant between 1970 and 2116: no point lies outside.
func bounded(ms int64) int64 { return min(max(ms, -1), 1<<62/int64(time.Millisecond)) }

// labelsOf are a series' labels. An attribute that is called as a column is exported_ as
// Prometheus itself names what it finds taken.
func labelsOf(s *series.Series, b *labels.Builder) labels.Labels {
	b.Reset(labels.EmptyLabels())
	for key, v := range s.Labels {
		name := kinds.LabelOf(key)
		if name == "service" && s.Service != "" || name == "user_id" && s.Tenant != "" || name == nameLabel {
			name = "exported_" + name
		}
		b.Set(name, v)
	}
	if s.Service != "" { // an empty one would take an attribute of that name away
		b.Set("service", s.Service)
	}
	if s.Tenant != "" {
		b.Set("user_id", s.Tenant)
	}
	return b.Set(nameLabel, s.Metric).Labels()
}

// load reads the points of what was found.
func (q *querier) load(ctx context.Context, set *set, found []labelled, from, to int64) error {
	req := series.SampleRequest{Topic: q.topic, From: after(from), To: upTo(to)}
	lines := make(map[series.Key]*line, len(found))
	for i := range found {
		req.Series = append(req.Series, found[i].Keyed)
		lines[found[i].Key] = set.of(found[i].labels)
	}
	n, distributions := 0, 0
	err := q.s.series.Samples(ctx, req, func(p *series.Sample) error {
		l := lines[p.Key]
		switch {
		case l == nil:
			return errors.New("a point of a series that was not asked for")
		case p.Distribution:
			distributions++
			return nil
		}
		if n%chunk == 0 {
			if err := q.take(ctx, chunk); err != nil {
				return err
			}
		}
		n++
		l.add(point{p.Ns / int64(time.Millisecond), number(p)})
		return nil
	})
	if err != nil {
		return err
	}
	if distributions > 0 {
		set.warnings.Add(fmt.Errorf("%w: %d points that stand for distributions are not samples: almanac align reads them", annotations.PromQLWarning, distributions))
	}
	set.finish()
	return nil
}

// number is a sample's value as Prometheus has it.
func number(p *series.Sample) float64 {
	switch p.Word {
	case kinds.PointsStale:
		return math.Float64frombits(value.StaleNaN)
	case kinds.PointsNaN:
		return math.Float64frombits(value.NormalNaN)
	case kinds.PointsInf:
		return math.Inf(1)
	case kinds.PointsNegInf:
		return math.Inf(-1)
	}
	return p.Value
}

// LabelNames implements storage.Querier.
func (q *querier) LabelNames(ctx context.Context, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return q.words(ctx, hints, matchers, func(l labels.Labels, add func(string)) {
		l.Range(func(one labels.Label) { add(one.Name) })
	})
}

// LabelValues implements storage.Querier.
func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return q.words(ctx, hints, matchers, func(l labels.Labels, add func(string)) {
		if v := l.Get(name); v != "" {
			add(v)
		}
	})
}

func (q *querier) words(ctx context.Context, hints *storage.LabelHints, matchers []*labels.Matcher, each func(labels.Labels, func(string))) ([]string, annotations.Annotations, error) {
	found, err := q.s.find(ctx, q.topic, q.from, q.to, matchers)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	var out []string
	for i := range found {
		each(found[i].labels, func(w string) {
			if !seen[w] {
				seen[w] = true
				out = append(out, w)
			}
		})
	}
	slices.SortFunc(out, cmp.Compare[string])
	if hints != nil && hints.Limit > 0 && len(out) > hints.Limit {
		out = out[:hints.Limit]
	}
	return out, nil, nil
}
