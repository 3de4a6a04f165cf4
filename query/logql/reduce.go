package logql

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

func sortedKeys(v vector) []string { return slices.Sorted(maps.Keys(v)) }

// grouped are the labels that a grouping keeps; without one: none.
func (g *Grouping) grouped(labels map[string]string) map[string]string {
	out := map[string]string{}
	switch {
	case g == nil:
	case g.Without:
		for name, v := range labels {
			if !slices.Contains(g.Labels, name) {
				out[name] = v
			}
		}
	default:
		for _, name := range g.Labels {
			if v := labels[name]; v != "" {
				out[name] = v
			}
		}
	}
	return out
}

// ranks reports whether the aggregation keeps some of its series as they are.
func (x *VectorAggregation) ranks() bool { return x.Func == "topk" || x.Func == "bottomk" }

// reduce reduces series by a grouping.
func (ev *evaluation) reduce(x *VectorAggregation, v vector) (vector, error) {
	if x.ranks() {
		return ev.ranked(x, v), nil
	}
	out, counts := vector{}, map[*row][]int{}
	for _, key := range sortedKeys(v) {
		one := v[key]
		into, err := ev.row(out, x.Group.grouped(one.labels))
		if err != nil {
			return nil, err
		}
		n := counts[into]
		if n == nil {
			n = make([]int, len(into.values))
			counts[into] = n
		}
		for k, there := range one.there {
			if !there {
				continue
			}
			value := one.values[k]
			switch {
			case x.Func == "count":
				into.values[k]++
			case x.Func == "sum" || x.Func == "avg":
				into.values[k] += value
			case n[k] == 0, x.Func == "min" && value < into.values[k], x.Func == "max" && value > into.values[k], math.IsNaN(into.values[k]):
				into.values[k] = value
			}
			into.there[k] = true
			n[k]++
		}
	}
	if x.Func == "avg" {
		for into, n := range counts {
			for k := range n {
				if n[k] > 0 {
					into.values[k] /= float64(n[k])
				}
			}
		}
	}
	return out, nil
}

// ranked keeps of each group, at each step, the series with the greatest or the least values.
func (ev *evaluation) ranked(x *VectorAggregation, v vector) vector {
	groups := map[string][]*row{}
	for _, key := range sortedKeys(v) {
		of := FormatLabels(x.Group.grouped(v[key].labels))
		groups[of] = append(groups[of], v[key])
	}
	for _, rows := range groups {
		for k := range ev.steps.count() {
			there := slices.DeleteFunc(slices.Clone(rows), func(r *row) bool { return !r.there[k] })
			slices.SortStableFunc(there, func(a, b *row) int {
				if x.Func == "topk" {
					a, b = b, a
				}
				return cmp.Compare(a.values[k], b.values[k])
			})
			for _, r := range there[min(x.Param, len(there)):] {
				r.there[k] = false
			}
		}
	}
	return v
}
