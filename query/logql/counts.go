package logql

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query"
)

// overRange evaluates an aggregation over ranges: counts by ClickHouse where a filter can say what is counted, else line by line.
func (ev *evaluation) overRange(ctx context.Context, x *RangeAggregation, around *VectorAggregation) (vector, error) {
	topics, err := ev.e.topics(ctx, ev.scope, x.Pipeline.Matchers)
	if err != nil {
		return nil, err
	}
	g := groupBy(x, around)
	from, to := ev.span(x)
	out := vector{}
	read := &reading{}
	var samples map[string]*samples
	for i := range topics {
		f, err := ev.e.fields(ctx, &topics[i], from, to, append(x.Pipeline.names(), g.Labels...))
		if err != nil {
			return nil, err
		}
		s := x.Pipeline.selection(f)
		if s.none {
			continue
		}
		by, counted := g.sources(f)
		if len(s.rest) == 0 && counted {
			err = ev.count(ctx, x, f, s.where, by, out)
		} else {
			samples, err = ev.collect(ctx, x, f, g, samples, read)
		}
		if err != nil {
			return nil, err
		}
	}
	ev.notes = append(ev.notes, read.notes...)
	if err := ev.overSamples(ctx, x, samples, out); err != nil {
		return nil, err
	}
	return out, nil
}

// span is what the ranges before all instants cover, both ends as a query has them: a range does not have its first instant, and
// has its last.
func (ev *evaluation) span(x *RangeAggregation) (from, to time.Time) {
	last := ev.steps.at(ev.steps.count() - 1)
	return ev.steps.Start.Add(-x.Offset - x.Range + 1), time.Unix(0, last).UTC().Add(-x.Offset + 1)
}

// by says which labels the series of a range have.
type by struct {
	Labels []string
	// only: no others; else those of streams too.
	only bool
}

// groupBy says which labels the series of an aggregation need: where a sum reduces them by labels, those alone; else those that
// name streams, and what is asked for by name.
func groupBy(x *RangeAggregation, around *VectorAggregation) by {
	switch {
	case x.Group != nil && !x.Group.Without:
		return by{x.Group.Labels, true}
	case around == nil || around.Group != nil && around.Group.Without:
		return by{}
	case around.Group == nil:
		return by{nil, around.Func == "sum" && additive(x)}
	}
	return by{around.Group.Labels, around.Func == "sum" && additive(x)}
}

// additive reports whether a sum of the function over series is the function over all their lines.
func additive(x *RangeAggregation) bool {
	return slices.Contains(countFuncs, x.Func) && x.Pipeline.Unwrap == nil
}

// labelled is a label of a series and where its values come from; the topic's name has no source.
type labelled struct{ label, name string }

// sources are the labels of series as fields to group by; false: one of them is of no single field.
func (g by) sources(f *topicFields) (out []labelled, ok bool) {
	labels := slices.Clone(g.Labels)
	if !g.only {
		labels = append(labels, f.streams...)
	}
	slices.Sort(labels)
	for _, label := range slices.Compact(labels) {
		s, one := f.of(label)
		if !one || s.form == formOther {
			return nil, false
		}
		out = append(out, labelled{label, s.name})
	}
	return out, len(out) <= query.MaxFacetFields
}

// count counts by ClickHouse, in steps of which each range is a whole number.
func (ev *evaluation) count(ctx context.Context, x *RangeAggregation, f *topicFields, where string, by []labelled, out vector) error {
	from, to := ev.span(x)
	width := x.Range
	if ev.steps.Step > 0 {
		width = gcd(x.Range, ev.steps.Step)
	}
	if n := to.Sub(from) / width; n > query.MaxGroups {
		return &Error{Kind: ErrTooMuch, Msg: fmt.Sprintf("ranges of %s at steps of %s are made of %d pieces, the limit is %d: take a step of which the range is a multiple", x.Range, ev.steps.Step, n, query.MaxGroups)}
	}
	req := query.GroupedRequest{Topic: f.topic.Name, From: from, To: to, Where: where, Width: width, Bytes: strings.HasPrefix(x.Func, "bytes_")}
	var names []string
	for _, l := range by {
		if l.name != "" {
			req.By = append(req.By, l.name)
			names = append(names, l.label)
		}
	}
	got, err := ev.e.r.Grouped(ctx, req)
	if err != nil {
		return err
	}
	ev.notes = append(ev.notes, got.Notes...)
	labelsOf := func(g *query.Group) map[string]string {
		labels := map[string]string{}
		for i, v := range g.Values {
			if v != "" {
				labels[names[i]] = v
			}
		}
		for _, l := range by {
			if l.name == "" {
				labels[l.label] = f.topic.Name
			}
		}
		return labels
	}
	per := 1.0
	if x.Func == "rate" || x.Func == "bytes_rate" {
		per = x.Range.Seconds()
	}
	each, pieces := ev.steps.Step/width, int64(x.Range/width)
	for i := range got.Groups {
		g := &got.Groups[i]
		r, err := ev.row(out, labelsOf(g))
		if err != nil {
			return err
		}
		// A piece is in the ranges of the instants k with k*each <= piece < k*each + pieces.
		first, last := int64(0), int64(0)
		if each > 0 {
			first, last = max(0, (g.Step-pieces)/int64(each)), min(g.Step/int64(each), int64(len(r.values)-1))
		}
		if err := ev.looked(ctx, int(last-first)+1); err != nil {
			return err
		}
		for k := first; k <= last; k++ {
			if at := k * int64(each); g.Step >= at && g.Step < at+pieces {
				r.values[k] += float64(g.Count) / per
				r.there[k] = true
			}
		}
	}
	return nil
}

func gcd(a, b time.Duration) time.Duration {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
