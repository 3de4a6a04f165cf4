package integration

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/query/logql"
)

// reduced compares an aggregation of series with one that is computed here: each series has the labels of its stream, those that were
// parsed and those that are named. What arithmetic and comparisons make of the numbers is computed here too. It reports whether there was
// something to compare.
func (h *logqlScene) reduced(t *testing.T) (compared bool) {
	t.Helper()
	rng := h.rng
	inner, span := h.pipeline(), oneOf(rng, time.Minute, 10*time.Minute, time.Hour)
	fn := oneOf(rng, "avg", "min", "max", "count", "topk", "bottomk")
	group := &logql.Grouping{Without: rng.IntN(2) == 0, Labels: oneOf(rng, []string{"level"}, []string{"service", "topic"}, []string{"host"}, []string{"endpoint", "code"})}
	src := fmt.Sprintf("(count_over_time(%s [%s]))", inner, span)
	how := "by"
	if group.Without {
		how = "without"
	}
	const kept = 2
	if ranks := strings.HasSuffix(fn, "k"); ranks {
		src = fmt.Sprintf("%s %s (%s) (%d, %s", fn, how, strings.Join(group.Labels, ","), kept, src[1:])
	} else {
		src = fmt.Sprintf("%s %s (%s) %s", fn, how, strings.Join(group.Labels, ","), src)
	}
	after := func(v float64) (float64, bool) { return v, true }
	switch rng.IntN(3) {
	case 0:
		src, after = "("+src+") * 2 - 1", func(v float64) (float64, bool) { return v*2 - 1, true }
	case 1:
		src, after = "("+src+") >= 2", func(v float64) (float64, bool) { return v, v >= 2 }
	}
	q, err := logql.Parse(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	log, err := logql.ParseSelector(inner)
	if err != nil {
		t.Fatal(err)
	}
	lines := h.of(t, log)
	if slices.ContainsFunc(lines, func(e *logql.Entry) bool { return e.Get(logql.ErrorLabel) != "" }) {
		return false // which a query refuses
	}
	steps := logql.Steps{Start: h.begin.Add(time.Duration(rng.IntN(100)) * time.Second), End: h.begin.Add(time.Hour), Step: oneOf(rng, time.Minute, 17*time.Minute)}
	got, err := h.engine.Numbers(t.Context(), logql.Scope{}, q.Metric, steps)
	if err != nil {
		t.Errorf("%s: %v", src, err)
		return false
	}
	have := map[string][]float64{} // by instant and group: of series that rank alike any may be there
	for _, s := range got.Series {
		for _, p := range s.Points {
			key := fmt.Sprint(p.At, logql.FormatLabels(groupedBy(group, s.Labels)))
			have[key] = append(have[key], p.Value)
		}
	}
	want := map[string][]float64{}
	for at := steps.Start; !at.After(steps.End); at = at.Add(steps.Step) {
		counts, groups := map[string]float64{}, map[string]string{}
		for _, entry := range lines {
			if entry.Ts <= at.Add(-span).UnixNano() || entry.Ts > at.UnixNano() {
				continue
			}
			labels := maps.Clone(entry.Stream)
			maps.Copy(labels, entry.Parsed)
			if !group.Without {
				for _, name := range group.Labels {
					labels[name] = entry.Get(name)
				}
			}
			maps.DeleteFunc(labels, func(_, v string) bool { return v == "" })
			series := logql.FormatLabels(labels)
			counts[series]++
			groups[series] = fmt.Sprint(at.UnixNano(), logql.FormatLabels(groupedBy(group, labels)))
		}
		of := map[string][]float64{}
		for series, n := range counts {
			of[groups[series]] = append(of[groups[series]], n)
		}
		for key, values := range of {
			for _, v := range reducedTo(fn, kept, values) {
				if v, keep := after(v); keep {
					want[key] = append(want[key], v)
				}
			}
		}
	}
	for _, some := range []map[string][]float64{have, want} {
		for _, values := range some {
			slices.Sort(values)
		}
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9*max(1, math.Abs(b)) }
	if !maps.EqualFunc(have, want, func(a, b []float64) bool { return slices.EqualFunc(a, b, near) }) {
		t.Errorf("%s at %v: %d values, want %d", src, steps, len(have), len(want))
	}
	return len(want) > 0
}

// groupedBy are the labels that a grouping keeps.
func groupedBy(g *logql.Grouping, labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(name, _ string) bool { return slices.Contains(g.Labels, name) == g.Without })
	return out
}

// reducedTo is what the values of a group's series come to.
func reducedTo(fn string, kept int, values []float64) []float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	slices.Sort(values)
	switch fn {
	case "avg":
		return []float64{sum / float64(len(values))}
	case "min":
		return values[:1]
	case "max":
		return values[len(values)-1:]
	case "count":
		return []float64{float64(len(values))}
	case "topk":
		slices.SortFunc(values, func(a, b float64) int { return cmp.Compare(b, a) })
	}
	return values[:min(kept, len(values))]
}
