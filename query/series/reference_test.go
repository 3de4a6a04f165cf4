package series

import (
	"math"
	"slices"
	"sort"
	"time"
)

// reference answers a request from points in memory, by the definitions alone: no SQL, no
// derived tables, two passes over every group.
func reference(points []point, req Request) map[string]Point {
	if err := req.check(); err != nil {
		panic(err)
	}
	series := map[string][]point{}
	for _, p := range last(points) {
		if req.Where == onlyUnitless && p.unit != "" || req.Where == onlyHostB && p.labels["host"] != "b" {
			continue
		}
		if p.metric == req.Metric && slices.Contains([]string{"", "gauge", "delta", "cumulative"}, p.kind) {
			series[p.series()] = append(series[p.series()], p)
		}
	}
	type cell struct {
		group string
		at    int64
	}
	aligned := map[cell][]Point{}  // of a group, one a series
	values := map[cell][]float64{} // of a group, all of them
	ofPoints := req.Align == Summary && percentiles[req.Reduce] != ""
	for _, own := range series {
		sort.Slice(own, func(i, j int) bool { return own[i].at.Before(own[j].at) })
		by := map[string]string{}
		for _, label := range req.By {
			by[label] = own[0].labels[label]
		}
		if req.Reduce == None {
			by = own[0].labels
		}
		group := labelsText(by) + "|" + (&selection{}).unitOf(own[0].unit, &req)
		for _, p := range own {
			if ns := p.at.UnixNano(); ofPoints && ns > req.From.UnixNano() && ns <= req.To.UnixNano() {
				c := cell{group, windowEnd(p.at, req.Period, true).UnixNano()}
				values[c] = append(values[c], p.value)
			}
		}
		for at, p := range alignOne(own, &req) {
			aligned[cell{group, at}] = append(aligned[cell{group, at}], p)
		}
	}
	out := map[string]Point{}
	for c, some := range aligned {
		p := some[0]
		switch {
		case ofPoints:
			p = pointOf(values[c], req.Reduce)
		case req.Reduce != None:
			p = reduceAll(some, &req)
		}
		p.Time = time.Unix(0, c.at).UTC()
		out[c.group+"|"+p.Time.Format(time.RFC3339Nano)] = p
	}
	return out
}

// last are the points that count: of one series and time the one that was made last.
func last(points []point) (out []point) {
	at := map[string]int{}
	for _, p := range points {
		key := p.series() + p.at.Format(time.RFC3339Nano)
		if i, ok := at[key]; !ok {
			at[key] = len(out)
			out = append(out, p)
		} else if p.made > out[i].made {
			out[i] = p
		}
	}
	return out
}

// alignOne aligns the points of one series, which are in order.
func alignOne(own []point, req *Request) map[int64]Point {
	windows := map[int64][]point{}
	grown := map[int64]float64{}
	out := map[int64]Point{}
	from, to := req.From.UnixNano(), req.To.UnixNano()
	for i, p := range own {
		ns := p.at.UnixNano()
		if ns <= from || ns > to {
			continue
		}
		if req.Align == None {
			out[ns] = Point{Value: number(p.value)}
			continue
		}
		w := int64(math.Ceil(float64(ns/1e6)/float64(req.Period.Milliseconds()))) * int64(req.Period)
		windows[w] = append(windows[w], p)
		switch {
		case p.kind == "delta":
			grown[w] += p.value
		case i == 0 || own[i-1].at.UnixNano() <= from-int64(max(Lookback, req.Period)):
		case p.value < own[i-1].value || !p.start.Equal(own[i-1].start) && !p.start.IsZero() && !own[i-1].start.IsZero():
			grown[w] += p.value
		default:
			grown[w] += p.value - own[i-1].value
		}
		if p.kind == "delta" || i > 0 && own[i-1].at.UnixNano() > from-int64(max(Lookback, req.Period)) {
			out[w] = Point{Value: number(grown[w])}
			if req.Align == Rate {
				out[w] = Point{Value: number(grown[w] / req.Period.Seconds())}
			}
		}
	}
	if req.Align == None || req.Align == Delta || req.Align == Rate {
		return out
	}
	out = map[int64]Point{}
	for w, some := range windows {
		var values []float64
		for _, p := range some {
			if p.dist == nil {
				values = append(values, p.value)
			} else { // values with the same count, sum and m2
				values = append(values, spread(p.dist)...)
			}
		}
		out[w] = pointOf(values, req.Align)
	}
	return out
}

// spread are two values that a distribution stands for.
func spread(d *Distribution) []float64 { return []float64{float64(d.Min), float64(d.Max)} }

func number(v float64) *Number {
	n := Number(v)
	return &n
}

// pointOf makes one value of many.
func pointOf(values []float64, how Aligner) Point {
	slices.Sort(values)
	n, sum, m2 := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	for _, v := range values {
		m2 += (v - sum/n) * (v - sum/n)
	}
	lo, hi := values[0], values[len(values)-1]
	rank := func(q float64) float64 {
		at := q * (n - 1)
		i := int(at)
		if i+1 == len(values) {
			return hi
		}
		return values[i] + (at-float64(i))*(values[i+1]-values[i])
	}
	switch how {
	case Summary:
		return Point{Distribution: &Distribution{Count: uint64(len(values)), Mean: Number(sum / n), Sum: Number(sum), Min: Number(lo), Max: Number(hi), M2: Number(m2)}}
	case Min:
		return Point{Value: number(lo)}
	case Max:
		return Point{Value: number(hi)}
	case Mean:
		return Point{Value: number(sum / n)}
	case Sum:
		return Point{Value: number(sum)}
	case Count:
		return Point{Value: number(n)}
	case Stddev:
		return Point{Value: number(math.Sqrt(m2 / n))}
	case P99:
		return Point{Value: number(rank(0.99))}
	case P95:
		return Point{Value: number(rank(0.95))}
	case P50:
		return Point{Value: number(rank(0.5))}
	case P05:
		return Point{Value: number(rank(0.05))}
	}
	panic(how)
}

// reduceAll makes one value of the aligned values of a group.
func reduceAll(some []Point, req *Request) Point {
	if req.Align != Summary {
		var values []float64
		for _, p := range some {
			values = append(values, float64(*p.Value))
		}
		return pointOf(values, req.Reduce)
	}
	all := Distribution{Min: Number(math.Inf(1)), Max: Number(math.Inf(-1))}
	for _, p := range some {
		d := p.Distribution
		all.Count, all.Sum, all.Min, all.Max = all.Count+d.Count, all.Sum+d.Sum, min(all.Min, d.Min), max(all.Max, d.Max)
	}
	all.Mean = all.Sum / Number(all.Count)
	for _, p := range some {
		d := p.Distribution
		all.M2 += d.M2 + Number(d.Count)*(d.Mean-all.Mean)*(d.Mean-all.Mean)
	}
	switch req.Reduce {
	case Summary:
		return Point{Distribution: &all}
	case Mean:
		return Point{Value: &all.Mean}
	case Min:
		return Point{Value: &all.Min}
	case Max:
		return Point{Value: &all.Max}
	case Sum:
		return Point{Value: &all.Sum}
	case Count:
		return Point{Value: number(float64(all.Count))}
	case Stddev:
		return Point{Value: number(math.Sqrt(float64(all.M2) / float64(all.Count)))}
	}
	panic(req.Reduce)
}

// near reports whether two points are the same but for rounding.
func near(a, b Point) bool {
	close := func(x, y Number) bool {
		return math.Abs(float64(x-y)) <= 1e-6+1e-9*max(math.Abs(float64(x)), math.Abs(float64(y)))
	}
	if a.Value != nil && b.Value != nil {
		return close(*a.Value, *b.Value)
	}
	d, e := a.Distribution, b.Distribution
	return d != nil && e != nil && d.Count == e.Count && close(d.Mean, e.Mean) && close(d.Sum, e.Sum) && close(d.Min, e.Min) && close(d.Max, e.Max) && close(d.M2, e.M2)
}
