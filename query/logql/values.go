package logql

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
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

// Answer is what a question for numbers comes to.
type Answer struct {
	Series []Series
	// Scalar: it is a number, and not series; Series has one then, without labels.
	Scalar bool
	// Notes say what the reader should know of the answer.
	Notes []string
}

// Numbers answers a question for numbers.
func (e *Engine) Numbers(ctx context.Context, s Scope, expr Expr, steps Steps) (*Answer, error) {
	if steps.Step > 0 && steps.End.Sub(steps.Start)/steps.Step > MaxSteps {
		return nil, &Error{Kind: ErrTooMuch, Msg: "exceeded maximum resolution of 11,000 points per timeseries. Try increasing the value of the step parameter"}
	}
	ev := &evaluation{e: e, scope: s, steps: steps, account: budget.Of(ctx)}
	v, err := ev.of(ctx, expr, nil)
	if err != nil {
		return nil, err
	}
	out := &Answer{Notes: once(ev.notes)}
	if n, ok := expr.(Number); ok {
		out.Series, out.Scalar = []Series{{Labels: map[string]string{}, Points: ev.constant(float64(n))}}, true
		return out, nil
	}
	out.Series = ev.series(v)
	return out, nil
}

// once are notes, each once.
func once(notes []string) []string {
	slices.Sort(notes)
	return slices.Compact(notes)
}

// evaluation is a question for numbers under way.
type evaluation struct {
	e       *Engine
	scope   Scope
	steps   Steps
	account *budget.Account
	work    int // looks at samples and counts, of all ranges
	notes   []string
}

// looked counts looks, and refuses a question that needs too many.
func (ev *evaluation) looked(ctx context.Context, n int) error {
	if ev.work += n; ev.work > maxWork {
		return &Error{Kind: ErrTooMuch, Msg: "the ranges of the query overlap too often: take a longer step, shorter ranges, or fewer labels"}
	}
	return ctx.Err()
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
	if err := ev.account.Take(int64(rowBytes + 2*len(key) + cellBytes*n)); err != nil {
		return nil, err
	}
	r := &row{labels: labels, values: make([]float64, n), there: make([]bool, n)}
	v[key] = r
	return r, nil
}

// Bounds of what is held before it is reduced: maxRows series, and maxCells values of all of them, 90 MB.
const (
	maxRows  = 10_000
	maxCells = 10_000_000
	// What a row takes without its labels, and each of its values.
	rowBytes, cellBytes = 500, 9
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
		v, err := ev.of(ctx, x.Inner, x.handed(around))
		if err != nil {
			return nil, err
		}
		if err := ev.looked(ctx, len(v)*ev.steps.count()); err != nil {
			return nil, err
		}
		return ev.reduce(x, v)
	case *Binary:
		return ev.binary(ctx, x, named(around))
	}
	panic("logql: an expression of no kind")
}

// handed is what the series below an aggregation are reduced by: itself, or what is around one that keeps series as they are.
func (x *VectorAggregation) handed(around *VectorAggregation) *VectorAggregation {
	if x.Group == nil && x.ranks() {
		return named(around)
	}
	return x
}

// named is an aggregation of which only the labels count: what lies between it and the ranges needs each series.
func named(around *VectorAggregation) *VectorAggregation {
	if around == nil {
		return nil
	}
	return &VectorAggregation{Group: around.Group}
}

func (ev *evaluation) binary(ctx context.Context, x *Binary, around *VectorAggregation) (vector, error) {
	l, lok := x.L.(Number)
	side := x.L
	if lok {
		side = x.R
	}
	v, err := ev.of(ctx, side, around)
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
