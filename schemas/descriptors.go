package schemas

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// Limits of descriptors.
const (
	MaxMetrics      = 1000
	MaxMetricLabels = 64
)

// sortMetrics puts descriptors into the order in which they are looked up.
func (t *Topic) sortMetrics() {
	if len(t.Metrics) == 0 {
		t.Metrics = nil
		return
	}
	t.Metrics = slices.Clone(t.Metrics)
	slices.SortStableFunc(t.Metrics, func(a, b MetricDescriptor) int { return cmp.Compare(a.Name, b.Name) })
}

// checkMetrics reports what is wrong with the descriptors.
func (t *Topic) checkMetrics() error {
	if len(t.Metrics) > MaxMetrics {
		return fmt.Errorf("%d metrics are described, the limit is %d", len(t.Metrics), MaxMetrics)
	}
	for i := range t.Metrics {
		d := &t.Metrics[i]
		switch {
		case d.Name == "" || len(d.Name) > MaxAttrKeyBytes:
			return fmt.Errorf("a metric's name has 1 to %d bytes, %.80q has %d", MaxAttrKeyBytes, d.Name, len(d.Name))
		case i > 0 && t.Metrics[i-1].Name == d.Name:
			return fmt.Errorf("metric %q is described twice", d.Name)
		case d.Points != "" && !slices.Contains(kinds.Numbers, d.Points):
			return fmt.Errorf("metric %q has points %q, they are one of %q", d.Name, d.Points, kinds.Numbers[1:])
		case d.Type != "" && !slices.Contains(kinds.ValueTypes, d.Type):
			return fmt.Errorf("metric %q has type %q, it is one of %q", d.Name, d.Type, kinds.ValueTypes)
		case len(d.Labels) > MaxMetricLabels || len(d.Required) > MaxMetricLabels || len(d.Defaults) > MaxMetricLabels:
			return fmt.Errorf("metric %q has %d labels, %d that are required and %d defaults, the limit is %d", d.Name, len(d.Labels), len(d.Required), len(d.Defaults), MaxMetricLabels)
		}
		for _, label := range slices.Concat(d.Labels, d.Required, slices.Sorted(maps.Keys(d.Defaults))) {
			if label == "" || len(label) > MaxAttrKeyBytes || t.field(label) >= 0 {
				return fmt.Errorf("metric %q has the label %.80q: a label has 1 to %d bytes and is not a column of the kind", d.Name, label, MaxAttrKeyBytes)
			}
			if len(d.Labels) > 0 && !slices.Contains(d.Labels, label) {
				return fmt.Errorf("metric %q requires the label %q or has a default of it, and its labels do not list it", d.Name, label)
			}
		}
	}
	return nil
}

// described is the descriptor of a metric, nil for one that is not described. It searches by
// itself: with a function of slices every event's texts would be allocated.
func (t *Topic) described(metric string) *MetricDescriptor {
	lo, hi := 0, len(t.Metrics)
	for lo < hi {
		if mid := (lo + hi) / 2; t.Metrics[mid].Name < metric {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(t.Metrics) || t.Metrics[lo].Name != metric {
		return nil
	}
	return &t.Metrics[lo]
}

// Complete gives a point what its metric's descriptor says and it lacks: unit, kind of points
// and labels. The attributes that the event was given stay as they are: it gets others.
func (t *Topic) Complete(e *Event) {
	if len(t.Metrics) == 0 {
		return
	}
	d := t.described(e.Type)
	if d == nil {
		return
	}
	var more []Attr
	give := func(key, value string) {
		if value != "" && e.attr(key) == nil {
			more = append(more, String(key, value))
		}
	}
	give(kinds.ColUnit, d.Unit)
	give(kinds.ColPoints, d.Points)
	for label, value := range d.Defaults {
		give(label, value)
	}
	if len(more) == 0 {
		return
	}
	// Texts of their own, or the compiler would have every event's attributes allocated.
	own := make([]Attr, 0, len(e.Attrs)+len(more))
	for i := range e.Attrs {
		own = append(own, e.Attrs[i].Clone())
	}
	e.Attrs = append(own, more...)
}

// checkDescribed holds a point to its metric's descriptor.
func (t *Topic) checkDescribed(e *Event) error {
	if len(t.Metrics) == 0 && !t.Strict {
		return nil
	}
	d := t.described(e.Type)
	if d == nil && t.Strict {
		return fmt.Errorf("%w: metric %.80q is not described, and topic %q is strict", ErrValue, strings.Clone(e.Type), t.Name)
	}
	if d == nil {
		return nil
	}
	for _, c := range []struct{ column, want string }{{kinds.ColUnit, d.Unit}, {kinds.ColPoints, d.Points}} {
		a := e.attr(c.column)
		if c.want == "" || a == nil || a.str == c.want || c.column == kinds.ColPoints && !slices.Contains(kinds.Numbers, a.str) {
			continue // samples that are not numbers have kinds of their own
		}
		return fmt.Errorf("%w: %s is %.80q, points of metric %q have %q", ErrValue, c.column, strings.Clone(a.Text()), d.Name, c.want)
	}
	if len(d.Labels) > 0 {
		for i := range e.Attrs {
			if key := e.Attrs[i].Key; t.field(key) < 0 && !slices.Contains(d.Labels, key) {
				return fmt.Errorf("%w: metric %q has no label %.80q; its labels are %s", ErrLabels, d.Name, strings.Clone(key), strings.Join(d.Labels, ", "))
			}
		}
	}
	for _, label := range d.Required {
		if a := e.attr(label); a == nil || a.Text() == "" {
			return fmt.Errorf("%w: points of metric %q must have the label %q", ErrLabels, d.Name, label)
		}
	}
	return checkType(d, e)
}

// checkType holds the value of a point to the type that its metric has.
func checkType(d *MetricDescriptor, e *Event) error {
	value, dist := e.attr(kinds.ColValue), e.attr(kinds.ColCount) != nil
	if d.Type == "" {
		return nil
	}
	if dist != (d.Type == kinds.ValueDistribution) {
		return fmt.Errorf("%w: metric %q has values of type %s, and this point is %s", ErrValue, d.Name, d.Type, map[bool]string{true: "a distribution", false: "a value"}[dist])
	}
	if dist {
		return nil
	}
	v, _ := value.AsFloat64()
	if d.Type == kinds.ValueInt64 && (v != math.Trunc(v) || math.Abs(v) > kinds.MaxExact) || d.Type == kinds.ValueBool && v != 0 && v != 1 {
		return fmt.Errorf("%w: value is %g, metric %q has values of type %s", ErrValue, v, d.Name, d.Type)
	}
	return nil
}
