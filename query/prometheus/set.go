package prometheus

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/almanac-events/almanac/query/prometheus/expr"
	"github.com/almanac-events/almanac/schemas"
)

// point is a sample: Unix milliseconds and a value.
type point struct {
	ms int64
	v  float64
}

// line is a series in memory.
type line struct {
	labels labels.Labels
	points points
	mixed  bool // its points are of several series of the topic, which have the same labels
}

// add adds the next point. Of one millisecond the last one counts.
func (l *line) add(p point) {
	if n := len(l.points); n > 0 && l.points[n-1].ms == p.ms {
		l.points[n-1] = p
		return
	}
	l.points = append(l.points, p)
}

// set is what a selector found.
type set struct {
	list     []*line
	byLabels map[uint64][]*line
	warnings annotations.Annotations
	at       int
}

func newSet(found []labelled) *set {
	s := &set{at: -1, byLabels: make(map[uint64][]*line, len(found)), warnings: annotations.Annotations{}}
	for i := range found {
		if l := s.of(found[i].labels); l != nil {
			l.mixed = true
			continue
		}
		l := &line{labels: found[i].labels}
		hash := l.labels.Hash()
		s.byLabels[hash] = append(s.byLabels[hash], l)
		s.list = append(s.list, l)
	}
	return s
}

// of is the line with labels, nil for none.
func (s *set) of(l labels.Labels) *line {
	for _, one := range s.byLabels[l.Hash()] {
		if labels.Equal(one.labels, l) {
			return one
		}
	}
	return nil
}

// again is the set from its beginning. A selector's series and points do not change once they are read.
func (s *set) again(sorted bool) *set {
	list := s.list
	if sorted {
		list = slices.SortedFunc(slices.Values(s.list), func(a, b *line) int { return labels.Compare(a.labels, b.labels) })
	}
	return &set{list: list, warnings: s.warnings, at: -1}
}

// visited refuses a selector of whose series a function would look at too many points: for each
// step at those in its range. It does that without looking for the end of its context.
func (s *set) visited(hints *storage.SelectHints, from, to int64) error {
	if hints == nil || hints.Range <= 0 || to <= from {
		return nil
	}
	steps := int64(1)
	if hints.Step > 0 {
		steps += max(0, to-from-hints.Range) / hints.Step
	}
	inRange := min(1, float64(hints.Range)/float64(to-from))
	for _, l := range s.list {
		if visits := float64(steps) * float64(len(l.points)) * inRange; visits > expr.MaxVisits {
			return fmt.Errorf("%w: a function looks at %.0f points of a series, %d times at those in its range, the limit is %d; take a longer step, or a shorter range", schemas.ErrRequest, visits, steps, expr.MaxVisits)
		}
	}
	return nil
}

// finish puts the points of lines that are made of several series in order, and leaves out
// lines without a point.
func (s *set) finish() {
	for _, l := range s.list {
		if l.mixed {
			all := l.points
			slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.ms, b.ms) })
			l.points = all[:0]
			for _, p := range all {
				l.add(p)
			}
		}
	}
	s.list = slices.DeleteFunc(s.list, func(l *line) bool { return len(l.points) == 0 })
}

// Next implements storage.SeriesSet.
func (s *set) Next() bool {
	s.at++
	return s.at < len(s.list)
}

// At implements storage.SeriesSet.
func (s *set) At() storage.Series { return s.list[s.at] }

// Err implements storage.SeriesSet.
func (s *set) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (s *set) Warnings() annotations.Annotations { return s.warnings }

// Labels implements storage.Series.
func (l *line) Labels() labels.Labels { return l.labels }

// Iterator implements storage.Series.
func (l *line) Iterator(again chunkenc.Iterator) chunkenc.Iterator {
	if it, ok := again.(interface{ Reset(storage.Samples) }); ok {
		it.Reset(l.points)
		return again
	}
	return storage.NewListSeriesIterator(l.points)
}

// points are those of a line; storage walks them.
type points []point

// Get implements storage.Samples. It returns a pointer, which takes no memory.
func (p points) Get(i int) chunks.Sample { return &p[i] }

// Len implements storage.Samples.
func (p points) Len() int { return len(p) }

// T, F and the others implement chunks.Sample: a number, and no histogram.
func (p *point) T() int64 { return p.ms }

// F is the value.
func (p *point) F() float64 { return p.v }

// ST is the start: the engine is not asked to use it.
func (p *point) ST() int64 { return 0 }

// H is nil.
func (p *point) H() *histogram.Histogram { return nil }

// FH is nil.
func (p *point) FH() *histogram.FloatHistogram { return nil }

// Type is that of a number.
func (p *point) Type() chunkenc.ValueType { return chunkenc.ValFloat }

// Copy returns another point.
func (p *point) Copy() chunks.Sample { c := *p; return &c }
