package evaluate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/events"
	"github.com/almanac-events/almanac/query/prometheus"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// maxSeriesBytes bounds the labels of a series that is an alert: they are in the event of each transition.
const maxSeriesBytes = 2 << 10

// samples asks for the values of a rule at an instant: those that meet its condition, and those of known groups. limit is how many series
// an expression may have.
func (e *Evaluator) samples(ctx context.Context, r *alerts.Rule, limit int, at int64, known map[string]bool) (out map[string]decide.Sample, err error) {
	within := askTime
	if r.Usual() != nil {
		within = usualTime
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if r.Expr != "" {
		err = e.vector(ctx, r, at, func(v promql.Vector) error {
			out, err = samplesOf(v, limit)
			return err
		})
		return out, err
	}
	if r.Usual() != nil {
		return e.unusual(ctx, r, at, known)
	}
	return e.bills(ctx, r, at, known)
}

// vector calls take with what a rule's expression has at an instant.
func (e *Evaluator) vector(ctx context.Context, r *alerts.Rule, at int64, take func(promql.Vector) error) error {
	q := prometheus.Query{Topic: r.Topic, Expr: r.Expr, Start: time.Unix(0, readAt(r, at)), AsStored: true}
	return e.metrics.Exec(ctx, &q, func(result *promql.Result, _ string) error {
		if result.Err != nil {
			return result.Err
		}
		switch v := result.Value.(type) {
		case promql.Vector:
			return take(v)
		case promql.Scalar:
			return take(promql.Vector{{F: v.V}})
		}
		return fmt.Errorf("the expression is of type %s; a rule needs a vector or a scalar", result.Value.Type())
	})
}

// readAt is the time at which a rule's expression is evaluated for an instant.
func readAt(r *alerts.Rule, at int64) int64 { return at - int64(r.QueryOffset) }

// within refuses more series than a rule may have: by its group's limit, or that of all.
func within(series, limit int) error {
	switch {
	case limit > 0 && series > limit:
		return fmt.Errorf("the expression has %d series, and the limit of its group is %d", series, limit)
	case series > decide.MaxGroups:
		return fmt.Errorf("the expression has %d series, the limit is %d: sum them, or compare with a number", series, decide.MaxGroups)
	}
	return nil
}

// fitsLabels refuses a series whose labels are more than a rule may have.
func fitsLabels(of labels.Labels, text string) error {
	if len(text) > maxSeriesBytes || of.Len() > alerts.MaxNames {
		return fmt.Errorf("a series of the expression has %d labels of %d bytes, the limits are %d and %d: sum by fewer", of.Len(), len(text), alerts.MaxNames, maxSeriesBytes)
	}
	return nil
}

// fitsNames refuses a series with a name of a label that does not fit as an attribute of an alert's event, which would not be stored, and the alert be
// forgotten and fire again.
func fitsNames(of labels.Labels) (err error) {
	of.Range(func(l labels.Label) {
		if most := schemas.MaxAttrKeyBytes - len(events.LabelPrefix); len(l.Name) > most {
			err = fmt.Errorf("a series of the expression has the label %.40q of %d bytes, the limit is %d: sum by others", l.Name, len(l.Name), most)
		}
	})
	return err
}

// errHistogram: a series is not of numbers.
var errHistogram = errors.New("the expression has native histograms, which are not numbers: take histogram_quantile or histogram_count of them")

// samplesOf are the series of a result, each under its labels without the name of its metric.
func samplesOf(all promql.Vector, limit int) (map[string]decide.Sample, error) {
	for _, s := range all {
		if err := fitsNames(s.Metric); err != nil {
			return nil, err
		}
	}
	out := make(map[string]decide.Sample, len(all))
	return out, eachSeries(all, limit, nil, "which differ by the metric's name alone", func(text string, _ labels.Labels, v float64) {
		out[text] = decide.Sample{Value: v, Met: true}
	})
}

// eachSeries calls take with each series of a result: its labels without the metric's name, and with those of a rule, of which an empty one
// takes the label away. alike says why two may be one.
func eachSeries(all promql.Vector, limit int, of map[string]string, alike string, take func(text string, of labels.Labels, v float64)) error {
	if err := within(len(all), limit); err != nil {
		return err
	}
	seen := make(map[string]struct{}, len(all))
	for _, s := range all {
		b := labels.NewBuilder(s.Metric).Del(model.MetricNameLabel)
		for name, value := range of {
			b.Set(name, value)
		}
		has := b.Labels()
		text := has.String()
		if err := fitsLabels(has, text); err != nil {
			return err
		}
		if s.H != nil {
			return errHistogram
		}
		if _, twice := seen[text]; twice {
			return fmt.Errorf("the expression has two series %s, %s: sum them", text, alike)
		}
		seen[text] = struct{}{}
		take(text, has, s.F)
	}
	return nil
}

// usageBy is what bills are for, by the field that a rule groups by.
var usageBy = map[string]usage.GroupBy{"": usage.Total, kinds.ColProvider: usage.ByProvider, kinds.ColSpace: usage.BySpace, schemas.ColUserID: usage.ByCustomer}

// errMany: a rule has more alerts than it may.
var errMany = fmt.Errorf("more than %d values of by meet the condition: raise its number, or take by away", decide.MaxGroups)

// bills are what a meter measured within a window that ends at an instant.
func (e *Evaluator) bills(ctx context.Context, r *alerts.Rule, at int64, known map[string]bool) (map[string]decide.Sample, error) {
	end, condition := time.Unix(0, at).UTC(), r.Decided().Condition
	out, met := map[string]decide.Sample{}, 0
	take := func(group, text string) error {
		v, err := numberOf(text)
		if err != nil {
			return err
		}
		s := decide.Sample{Value: v, Met: condition.Met(v)}
		if s.Met {
			met++
		}
		if met > decide.MaxGroups {
			return errMany
		}
		if s.Met || known[group] {
			out[group] = s
		}
		return nil
	}
	if r.Measure == alerts.MeasureSize {
		q := usage.SizeRequest{Topic: r.Topic, Meter: r.Meter, At: end, GroupBy: usageBy[r.By]}
		return out, e.usage.Sizes(ctx, q, func(s usage.Size) error { return take(groupOf(r.By, s.Provider, s.Space, s.Customer), s.Size) })
	}
	return out, e.window(ctx, r, end, take)
}

// window calls take with what each group used within the rule's window that ends at a time.
func (e *Evaluator) window(ctx context.Context, r *alerts.Rule, end time.Time, take func(group, usage string) error) error {
	q := usage.Request{Topic: r.Topic, Meter: r.Meter, From: end.Add(-r.Span()), To: end, GroupBy: usageBy[r.By], Measure: usage.Measure(r.Measure)}
	return e.usage.Bills(ctx, q, func(b usage.Bill) error { return take(groupOf(r.By, b.Provider, b.Space, b.Customer), b.Usage) })
}

// numberOf reads a usage, which is as exact as it was counted.
func numberOf(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, fmt.Errorf("alerts: usage %q: %w", text, err)
	}
	return v, nil
}

// groupOf is the value of the field that a rule groups by.
func groupOf(by, provider, space, customer string) string {
	return map[string]string{"": "", kinds.ColProvider: provider, kinds.ColSpace: space, schemas.ColUserID: customer}[by]
}
