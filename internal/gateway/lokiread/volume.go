package lokiread

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query/logql"
)

const (
	defaultVolumes = 100
	maxVolumes     = 5000 // what a client may ask for; it gets logql.MaxSeries
)

// volumes is a question of one of the two routes: an expression of bytes by labels, and how many rows of its answer are asked for.
type volumes struct {
	expr  logql.Expr
	limit int
	// byLabel: a row is of a label, whatever its value, and not of a series.
	byLabel bool
}

// volumesOf reads what the two routes have in common.
func volumesOf(r *http.Request, span time.Duration) (*volumes, error) {
	p, err := selector(r, "query")
	if err != nil {
		return nil, err
	}
	v, labels := &volumes{}, []string(nil)
	if v.limit, err = number(r, "limit", defaultVolumes, maxVolumes); err != nil {
		return nil, err
	}
	if targets := r.FormValue("targetLabels"); targets != "" {
		labels = strings.Split(targets, ",")
	}
	switch by := r.FormValue("aggregateBy"); by {
	case "", "series":
	case "labels":
		v.byLabel = true
	default:
		return nil, badRequest("aggregateBy must be series or labels, not %q", by)
	}
	if labels == nil {
		for i := range p.Matchers { // Loki's volumes are by the labels that the selector names
			labels = append(labels, p.Matchers[i].Name)
		}
	}
	group := &logql.Grouping{Labels: labels}
	if labels == nil {
		group = &logql.Grouping{Without: true}
	}
	v.expr = &logql.VectorAggregation{Func: "sum", Inner: &logql.RangeAggregation{Func: "bytes_over_time", Pipeline: p, Range: span}, Group: group}
	return v, nil
}

// volume is how many bytes of lines there are, by labels, the most first.
func (a *API) volume(r *http.Request, s logql.Scope) (any, error) {
	from, to, err := span(r)
	if err != nil {
		return nil, err
	}
	v, err := volumesOf(r, max(to.Sub(from), 1))
	if err != nil {
		return nil, err
	}
	got, err := a.cfg.Engine.Numbers(r.Context(), s, v.expr, logql.Steps{Start: to, End: to})
	if err != nil {
		return nil, err
	}
	v.rows(got)
	return vector(r, got)
}

// rows turns series into the rows that are asked for. Where the gateway gives fewer than that, a note says so.
func (v *volumes) rows(got *logql.Answer) {
	if v.byLabel {
		got.Series = perLabel(got.Series)
	}
	total := func(s *logql.Series) (n float64) {
		for _, p := range s.Points {
			n += p.Value
		}
		return n
	}
	slices.SortStableFunc(got.Series, func(a, b logql.Series) int { return cmp.Compare(total(&b), total(&a)) })
	asked := min(len(got.Series), v.limit)
	if asked > logql.MaxSeries {
		got.Notes = append(got.Notes, fmt.Sprintf("these are the %d largest of %d: an answer has no more. Name fewer labels in targetLabels, or narrow the selector", logql.MaxSeries, len(got.Series)))
	}
	got.Series = got.Series[:min(asked, logql.MaxSeries)]
}

// perLabel sums series by each label that they have. As Loki's, a row has the label's name, and no value.
func perLabel(all []logql.Series) []logql.Series {
	sums := map[string]map[int64]float64{}
	for i := range all {
		for name, value := range all[i].Labels {
			if value == "" {
				continue
			}
			if sums[name] == nil {
				sums[name] = map[int64]float64{}
			}
			for _, p := range all[i].Points {
				sums[name][p.At] += p.Value
			}
		}
	}
	out := make([]logql.Series, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		one := logql.Series{Labels: map[string]string{name: ""}}
		for _, at := range slices.Sorted(maps.Keys(sums[name])) {
			one.Points = append(one.Points, logql.Point{At: at, Value: sums[name][at]})
		}
		out = append(out, one)
	}
	return out
}

// volumeRange is the same in steps.
func (a *API) volumeRange(r *http.Request, s logql.Scope) (any, error) {
	from, to, err := span(r)
	if err != nil {
		return nil, err
	}
	step := max(to.Sub(from)/250, time.Second).Truncate(time.Second)
	if text := r.FormValue("step"); text != "" {
		if step, err = parseStep(text); err != nil {
			return nil, err
		}
	}
	v, err := volumesOf(r, step)
	if err != nil {
		return nil, err
	}
	got, err := a.cfg.Engine.Numbers(r.Context(), s, v.expr, logql.Steps{Start: from, End: to, Step: step})
	if err != nil {
		return nil, err
	}
	v.rows(got)
	return matrix(r, got)
}
