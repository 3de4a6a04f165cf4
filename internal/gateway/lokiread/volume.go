package lokiread

import (
	"cmp"
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

// volumeQuery reads what the two routes of volumes have in common: an expression of bytes, by labels.
func volumeQuery(r *http.Request, span time.Duration) (logql.Expr, int, error) {
	p, err := selector(r, "query")
	if err != nil {
		return nil, 0, err
	}
	limit, err := number(r, "limit", defaultVolumes, maxVolumes)
	if err != nil {
		return nil, 0, err
	}
	var names []string
	if targets := r.FormValue("targetLabels"); targets != "" {
		names = strings.Split(targets, ",")
	}
	switch by := r.FormValue("aggregateBy"); by {
	case "", "series", "labels":
	default:
		return nil, 0, badRequest("aggregateBy must be series or labels, not %q", by)
	}
	if names == nil {
		for i := range p.Matchers { // Loki's volumes are by the labels that the selector names
			names = append(names, p.Matchers[i].Name)
		}
	}
	sum := &logql.VectorAggregation{Func: "sum", Inner: &logql.RangeAggregation{Func: "bytes_over_time", Pipeline: p, Range: span}}
	if names == nil {
		sum.Group = &logql.Grouping{Without: true}
	} else {
		sum.Group = &logql.Grouping{Labels: names}
	}
	return sum, limit, nil
}

// volume is how many bytes of lines there are, by labels, the most first.
func (a *API) volume(r *http.Request, s logql.Scope) (any, error) {
	from, to, err := span(r)
	if err != nil {
		return nil, err
	}
	expr, limit, err := volumeQuery(r, max(to.Sub(from), 1))
	if err != nil {
		return nil, err
	}
	got, err := a.cfg.Engine.Numbers(r.Context(), s, expr, logql.Steps{Start: to, End: to})
	if err != nil {
		return nil, err
	}
	largest(got, limit)
	return vector(r, got)
}

// largest keeps the series that have the most in all, the most first.
func largest(got *logql.Answer, limit int) {
	total := func(s *logql.Series) (n float64) {
		for _, p := range s.Points {
			n += p.Value
		}
		return n
	}
	slices.SortStableFunc(got.Series, func(a, b logql.Series) int { return cmp.Compare(total(&b), total(&a)) })
	got.Series = got.Series[:min(len(got.Series), limit, logql.MaxSeries)]
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
	expr, limit, err := volumeQuery(r, step)
	if err != nil {
		return nil, err
	}
	got, err := a.cfg.Engine.Numbers(r.Context(), s, expr, logql.Steps{Start: from, End: to, Step: step})
	if err != nil {
		return nil, err
	}
	largest(got, limit)
	return matrix(r, got)
}
