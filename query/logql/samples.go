package logql

import (
	"context"
	"math"
	"slices"
	"sort"
	"strings"
)

// samples are what a series is computed from line by line, in the order of time.
type samples struct {
	labels map[string]string
	at     []int64
	values []float64
}

// maxWork bounds how many samples and counts all ranges and groups of a query look at.
const maxWork = 50_000_000

// collect reads the lines of a topic that an aggregation is over.
func (ev *evaluation) collect(ctx context.Context, x *RangeAggregation, f *topicFields, g by, into map[string]*samples, read *reading) (map[string]*samples, error) {
	if into == nil {
		into = map[string]*samples{}
	}
	from, to := ev.span(x)
	var failed error
	err := ev.e.each(ctx, f, x.Pipeline, pages{from: from, to: to, forward: true, read: read}, func(e *Entry) bool {
		if failed = e.failed(); failed != nil {
			return false
		}
		v, ok := x.sample(e)
		if !ok {
			return true
		}
		labels := g.labelsOf(f, e, x)
		key := FormatLabels(labels)
		s := into[key]
		if s == nil {
			if len(into) >= maxRows {
				failed = errRows
				return false
			}
			s = &samples{labels: labels}
			into[key] = s
		}
		s.at, s.values = append(s.at, e.Ts), append(s.values, v)
		return true
	})
	if err == nil {
		err = failed
	}
	return into, err
}

// failed is why numbers cannot be made of an entry. Loki refuses such a query too, and says how to leave the lines out.
func (e *Entry) failed() error {
	if kind := e.Get(ErrorLabel); kind != "" {
		return &Error{Kind: ErrSyntax, Msg: "pipeline error: '" + kind + "' for series: '" + FormatLabels(e.Labels()) + "'.\nUse a label filter to intentionally skip this error. (e.g | __error__!=\"" + kind + "\").\nTo skip all potential errors you can match empty errors.(e.g __error__=\"\")"}
	}
	return nil
}

func (x *RangeAggregation) sample(e *Entry) (float64, bool) {
	switch {
	case x.Pipeline.Unwrap != nil:
		return x.Pipeline.Unwrap.Value(e)
	case strings.HasPrefix(x.Func, "bytes_"):
		return float64(len(e.Line)), true
	}
	return 1, true
}

// labelsOf are the labels of the series that an entry counts for.
func (g by) labelsOf(f *topicFields, e *Entry, x *RangeAggregation) map[string]string {
	labels := map[string]string{}
	if !g.only {
		for name, v := range e.Stream {
			labels[name] = v
		}
		for name, v := range e.Parsed {
			labels[name] = v
		}
		if x.Pipeline.Unwrap != nil {
			delete(labels, x.Pipeline.Unwrap.Label)
		}
	}
	for _, name := range g.Labels {
		labels[name] = e.Get(name)
	}
	if x.Group != nil && x.Group.Without {
		for _, name := range x.Group.Labels {
			delete(labels, name)
		}
	}
	for name, v := range labels {
		if v == "" {
			delete(labels, name)
		}
	}
	return labels
}

// overSamples computes an aggregation at each instant.
func (ev *evaluation) overSamples(ctx context.Context, x *RangeAggregation, all map[string]*samples, out vector) error {
	for _, s := range all {
		if !slices.IsSorted(s.at) {
			sort.Sort(byTime{s}) // of several topics
		}
		r, err := ev.row(out, s.labels)
		if err != nil {
			return err
		}
		for k := range r.values {
			end := ev.steps.at(k) - x.Offset.Nanoseconds()
			lo := sort.Search(len(s.at), func(i int) bool { return s.at[i] > end-x.Range.Nanoseconds() })
			hi := sort.Search(len(s.at), func(i int) bool { return s.at[i] > end })
			if lo == hi {
				continue
			}
			if err := ev.looked(ctx, hi-lo); err != nil {
				return err
			}
			r.values[k] += x.over(s.values[lo:hi])
			r.there[k] = true
		}
	}
	return nil
}

// over reduces the values of one range, of which there is one at least.
func (x *RangeAggregation) over(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	switch x.Func {
	case "rate", "bytes_rate":
		return sum / x.Range.Seconds()
	case "avg_over_time":
		return sum / float64(len(values))
	case "min_over_time":
		return slices.Min(values)
	case "max_over_time":
		return slices.Max(values)
	case "first_over_time":
		return values[0]
	case "last_over_time":
		return values[len(values)-1]
	case "quantile_over_time":
		return quantile(x.Param, values)
	}
	return sum
}

// quantile interpolates between the two nearest values, as Loki and Prometheus do.
func quantile(q float64, values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := q * float64(len(sorted)-1)
	lo := int(math.Floor(rank))
	hi := min(lo+1, len(sorted)-1)
	return sorted[lo]*(1-(rank-float64(lo))) + sorted[hi]*(rank-float64(lo))
}

type byTime struct{ *samples }

func (s byTime) Len() int           { return len(s.at) }
func (s byTime) Less(a, b int) bool { return s.at[a] < s.at[b] }
func (s byTime) Swap(a, b int) {
	s.at[a], s.at[b] = s.at[b], s.at[a]
	s.values[a], s.values[b] = s.values[b], s.values[a]
}
