package logql

import (
	"context"
	"math"
	"time"
)

// Series is a series of numbers.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a number at an instant.
type Point struct {
	At    int64 // unix ns
	Value float64
}

// Steps are the instants at which a question for numbers is answered; one where Step is 0.
type Steps struct {
	Start, End time.Time
	Step       time.Duration
}

// count returns how many instants there are.
func (s Steps) count() int {
	if s.Step <= 0 {
		return 1
	}
	return int(s.End.Sub(s.Start)/s.Step) + 1
}

func (s Steps) at(k int) int64 { return s.Start.UnixNano() + int64(k)*s.Step.Nanoseconds() }

// Numbers answers a question for numbers. A scalar has one series without labels, and scalar is true.
func (e *Engine) Numbers(ctx context.Context, s Scope, expr Expr, steps Steps) (all []Series, scalar bool, err error) {
	if steps.Step > 0 && steps.End.Sub(steps.Start)/steps.Step > MaxSteps {
		return nil, false, &Error{Kind: ErrTooMuch, Msg: "exceeded maximum resolution of 11,000 points per timeseries. Try increasing the value of the step parameter"}
	}
	ev := &evaluation{e: e, scope: s, steps: steps}
	v, err := ev.of(ctx, expr, nil)
	if err != nil {
		return nil, false, err
	}
	if n, ok := expr.(Number); ok {
		return []Series{{Labels: map[string]string{}, Points: ev.constant(float64(n))}}, true, nil
	}
	return ev.series(v), false, nil
}

// evaluation is a question for numbers under way.
type evaluation struct {
	e     *Engine
	scope Scope
	steps Steps
}

// vector is series by the text of their labels; a value that is not there is NaN and absent.
type vector map[string]*row

type row struct {
	labels map[string]string
	values []float64 // one of each step
	there  []bool
}

func (ev *evaluation) row(v vector, labels map[string]string) (*row, error) {
	key := FormatLabels(labels)
	if r, ok := v[key]; ok {
		return r, nil
	}
	n := ev.steps.count()
	if len(v) >= maxRows || (len(v)+1)*n > maxCells {
		return nil, errRows
	}
	r := &row{labels: labels, values: make([]float64, n), there: make([]bool, n)}
	v[key] = r
	return r, nil
}

// Bounds of what is held before it is reduced: maxRows series, and maxCells values of all of them, 90 MB.
const (
	maxRows  = 10_000
	maxCells = 10_000_000
)

var errRows = &Error{Kind: ErrTooMuch, Msg: "the query makes more series than it may hold: group by fewer labels, or take a longer step"}

func (ev *evaluation) constant(v float64) []Point {
	out := make([]Point, ev.steps.count())
	for k := range out {
		out[k] = Point{ev.steps.at(k), v}
	}
	return out
}

func (ev *evaluation) series(v vector) []Series {
	out := make([]Series, 0, len(v))
	for _, key := range sortedKeys(v) {
		r := v[key]
		s := Series{Labels: r.labels}
		for k, there := range r.there {
			if there {
				s.Points = append(s.Points, Point{ev.steps.at(k), r.values[k]})
			}
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// of evaluates an expression. around is the aggregation that reduces its series, if one does.
func (ev *evaluation) of(ctx context.Context, expr Expr, around *VectorAggregation) (vector, error) {
	switch x := expr.(type) {
	case Number:
		return nil, nil
	case Vector:
		v := vector{}
		r, err := ev.row(v, map[string]string{})
		if err != nil {
			return nil, err
		}
		for k := range r.values {
			r.values[k], r.there[k] = float64(x), true
		}
		return v, nil
	case *RangeAggregation:
		return ev.overRange(ctx, x, around)
	case *VectorAggregation:
		v, err := ev.of(ctx, x.Inner, x)
		if err != nil {
			return nil, err
		}
		return ev.reduce(x, v)
	case *Binary:
		return ev.binary(ctx, x)
	}
	panic("logql: an expression of no kind")
}

func (ev *evaluation) binary(ctx context.Context, x *Binary) (vector, error) {
	l, lok := x.L.(Number)
	side := x.L
	if lok {
		side = x.R
	}
	v, err := ev.of(ctx, side, nil)
	if err != nil {
		return nil, err
	}
	r, _ := x.R.(Number)
	for _, one := range v {
		for k, there := range one.there {
			if !there {
				continue
			}
			a, b := one.values[k], float64(r)
			if lok {
				a, b = float64(l), one.values[k]
			}
			got, keep := calculate(x.Op, a, b, x.Bool)
			if comparison(x.Op) && !x.Bool {
				got = one.values[k] // a comparison selects
			}
			one.values[k], one.there[k] = got, keep
			if math.IsNaN(got) && comparison(x.Op) {
				one.there[k] = false
			}
		}
	}
	return v, nil
}
