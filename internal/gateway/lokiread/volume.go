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

// volumes is a question of one of the two routes: which lines, by which labels, and how many rows of its answer are asked for.
type volumes struct {
	lines *logql.Pipeline
	group *logql.Grouping
	limit int
	// byLabel: a row is of a label, whatever its value, and not of a series.
	byLabel bool
}

// volumesOf reads what the two routes have in common.
func volumesOf(r *http.Request) (*volumes, error) {
	p, err := selector(r, "query")
	if err != nil {
		return nil, err
	}
	v, labels := &volumes{lines: p}, []string(nil)
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
	v.group = &logql.Grouping{Labels: labels}
	if labels == nil {
		v.group = &logql.Grouping{Without: true}
	}
	return v, nil
}

// over is the bytes of the lines of a span before an instant, by labels.
func (v *volumes) over(span time.Duration) logql.Expr {
	return &logql.VectorAggregation{Func: "sum", Inner: &logql.RangeAggregation{Func: "bytes_over_time", Pipeline: v.lines, Range: span}, Group: v.group}
}

// volume is how many bytes of lines there are, by labels, the most first.
func (a *API) volume(r *http.Request, s logql.Scope) (any, error) {
	from, to, err := span(r)
	if err != nil {
		return nil, err
	}
	v, err := volumesOf(r)
	if err != nil {
		return nil, err
	}
	got, err := a.cfg.Engine.Numbers(r.Context(), s, v.over(max(to.Sub(from), 1)), logql.Steps{Start: to, End: to})
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

// volumeRange is the same in steps, which have what the range has and no more: each is at its end, and the last may be shorter.
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
	v, err := volumesOf(r)
	if err != nil {
		return nil, err
	}
	got := &logql.Answer{}
	whole := to.Sub(from) / step
	end := from.Add(whole * step)
	if whole > 0 {
		if got, err = a.cfg.Engine.Numbers(r.Context(), s, v.over(step), logql.Steps{Start: from.Add(step), End: end, Step: step}); err != nil {
			return nil, err
		}
	}
	if rest := to.Sub(end); rest > 0 {
		last, err := a.cfg.Engine.Numbers(r.Context(), s, v.over(rest), logql.Steps{Start: to, End: to})
		if err != nil {
			return nil, err
		}
		got = followed(got, last)
	}
	v.rows(got)
	return matrix(r, got)
}

// followed is an answer with the points of another, which are later.
func followed(a, later *logql.Answer) *logql.Answer {
	at := map[string]int{}
	for i := range a.Series {
		at[logql.FormatLabels(a.Series[i].Labels)] = i
	}
	for _, s := range later.Series {
		if i, there := at[logql.FormatLabels(s.Labels)]; there {
			a.Series[i].Points = append(a.Series[i].Points, s.Points...)
		} else {
			a.Series = append(a.Series, s)
		}
	}
	for _, note := range later.Notes {
		if !slices.Contains(a.Notes, note) {
			a.Notes = append(a.Notes, note)
		}
	}
	return a
}
