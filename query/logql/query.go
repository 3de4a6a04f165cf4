package logql

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/participle/v2/lexer"
)

// Query is what a text asks for: lines, or numbers. It does not change.
type Query struct {
	// Log is set when lines are asked for, and Metric when numbers are.
	Log    *Pipeline
	Metric Expr
}

// Pipeline selects events, and makes lines and labels of them.
type Pipeline struct {
	Matchers []Matcher
	Stages   []Stage
	// Unwrap is the label whose values an aggregation is over; nil: over lines.
	Unwrap *Unwrap
}

// Expr is a part of a question for numbers.
type Expr interface{ expr() }

type (
	// Number is a scalar, the same at each instant.
	Number float64
	// Vector is a scalar as a series without labels.
	Vector float64
	// RangeAggregation reduces the lines of a range of time before each instant.
	RangeAggregation struct {
		Func     string
		Param    float64 // of quantile_over_time
		Pipeline *Pipeline
		Range    time.Duration
		Offset   time.Duration
		Group    *Grouping
	}
	// VectorAggregation reduces series.
	VectorAggregation struct {
		Func  string
		Param int // of topk and bottomk
		Inner Expr
		Group *Grouping
	}
	// Binary joins two expressions, of which one is a Number or both are Vectors.
	Binary struct {
		Op   string
		Bool bool // a comparison gives 0 and 1, and does not select
		L, R Expr
	}
	// Grouping says by which labels series are reduced.
	Grouping struct {
		Without bool
		Labels  []string
	}
)

func (Number) expr()             {}
func (Vector) expr()             {}
func (*RangeAggregation) expr()  {}
func (*VectorAggregation) expr() {}
func (*Binary) expr()            {}

// Functions over ranges: those that count lines, and those over unwrapped values.
var (
	countFuncs  = []string{"count_over_time", "rate", "bytes_over_time", "bytes_rate"}
	unwrapFuncs = []string{"sum_over_time", "avg_over_time", "min_over_time", "max_over_time", "quantile_over_time", "first_over_time", "last_over_time", "rate"}
	vectorFuncs = []string{"sum", "avg", "min", "max", "count", "topk", "bottomk"}
	// refusedFuncs are of LogQL, and not built.
	refusedFuncs = []string{"absent_over_time", "stddev_over_time", "stdvar_over_time", "rate_counter", "stddev", "stdvar", "sort", "sort_desc", "approx_topk", "label_replace"}
)

// Parse reads a query.
func Parse(src string) (*Query, error) {
	tree, err := parseText(src)
	if err != nil {
		return nil, err
	}
	if tree.Log != nil {
		p, err := pipeline(tree.Log)
		if err == nil && p.Unwrap != nil {
			err = unsupported(tree.Log.Stages[len(tree.Log.Stages)-1].Pos, "unwrap outside of an aggregation: write sum_over_time({…} | unwrap label [5m])")
		}
		return &Query{Log: p}, err
	}
	e, err := metric(tree.Metric)
	if err != nil {
		return nil, err
	}
	return &Query{Metric: e}, nil
}

// ParseSelector reads the selector of a request that is about streams, such as match[]; the pipeline behind it may filter.
func ParseSelector(src string) (*Pipeline, error) {
	q, err := Parse(src)
	switch {
	case err != nil:
		return nil, err
	case q.Log == nil:
		return nil, &Error{Kind: ErrSyntax, Line: 1, Column: 1, Msg: `this takes a selector, such as {service="api"}, and no aggregation`}
	}
	return q.Log, nil
}

func refuse(kind error, at lexer.Position, format string, args ...any) error {
	return &Error{Kind: kind, Line: at.Line, Column: at.Column, Msg: fmt.Sprintf("parse error at line %d, col %d: ", at.Line, at.Column) + fmt.Sprintf(format, args...)}
}

func unsupported(at lexer.Position, what string) error {
	return refuse(ErrUnsupported, at, "Almanac does not have %s", what)
}

// precedence of operators, the weakest first.
var precedence = map[string]int{"==": 1, "!=": 1, ">": 1, "<": 1, ">=": 1, "<=": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3, "^": 4}

func comparison(op string) bool { return precedence[op] == 1 }

func metric(t *metricTerm) (Expr, error) {
	for _, o := range t.Rest {
		switch {
		case o.Op == "and" || o.Op == "or" || o.Op == "unless":
			return nil, unsupported(o.Pos, "the operator "+o.Op)
		case o.Match != "":
			return nil, unsupported(o.Pos, o.Match+": it takes arithmetic between a metric and a number")
		case o.Bool && !comparison(o.Op):
			return nil, refuse(ErrSyntax, o.Pos, "bool stands behind a comparison, not behind %s", o.Op)
		}
	}
	left, err := operand(t.First)
	if err != nil {
		return nil, err
	}
	e, rest, err := climb(left, t.Rest, 1)
	if err == nil && len(rest) > 0 {
		err = refuse(ErrSyntax, rest[0].Pos, "unexpected %s", rest[0].Op)
	}
	return e, err
}

// climb joins operands by the precedence of their operators; ^ joins from the right.
func climb(left Expr, rest []*opTerm, least int) (Expr, []*opTerm, error) {
	for len(rest) > 0 && precedence[rest[0].Op] >= least {
		o := rest[0]
		right, err := operand(o.Operand)
		if err != nil {
			return nil, nil, err
		}
		rest = rest[1:]
		for len(rest) > 0 && (precedence[rest[0].Op] > precedence[o.Op] || rest[0].Op == "^" && o.Op == "^") {
			next := precedence[o.Op] + 1
			if o.Op == "^" {
				next = precedence[o.Op]
			}
			if right, rest, err = climb(right, rest, next); err != nil {
				return nil, nil, err
			}
		}
		if left, err = join(o, left, right); err != nil {
			return nil, nil, err
		}
	}
	return left, rest, nil
}

func join(o *opTerm, l, r Expr) (Expr, error) {
	ln, lok := l.(Number)
	rn, rok := r.(Number)
	switch {
	case lok && rok:
		v, keep := calculate(o.Op, float64(ln), float64(rn), true)
		if !keep {
			v = 0
		}
		return Number(v), nil
	case lok, rok:
		return &Binary{o.Op, o.Bool, l, r}, nil
	}
	lv, lok := l.(Vector)
	rv, rok := r.(Vector)
	if lok && rok && !comparison(o.Op) {
		v, _ := calculate(o.Op, float64(lv), float64(rv), false)
		return Vector(v), nil
	}
	return nil, unsupported(o.Pos, "arithmetic between two metrics: it takes a metric and a number")
}

func operand(t *operandTerm) (e Expr, err error) {
	switch {
	case t.Number != nil:
		v, err := strconv.ParseFloat(*t.Number, 64)
		if err != nil {
			return nil, refuse(ErrSyntax, t.Pos, "%s is out of range", *t.Number)
		}
		e = Number(v)
	case t.Group != nil:
		e, err = metric(t.Group)
	default:
		e, err = call(t.Pos, t.Call)
	}
	if err != nil || t.Sign != "-" {
		return e, err
	}
	if n, ok := e.(Number); ok {
		return -n, nil
	}
	return &Binary{Op: "*", L: Number(-1), R: e}, nil
}

func call(at lexer.Position, t *callTerm) (Expr, error) {
	group, err := grouping(at, t)
	if err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(refusedFuncs, t.Name):
		return nil, unsupported(at, t.Name)
	case len(t.Texts) > 0:
		return nil, refuse(ErrSyntax, at, "%s takes no text", t.Name)
	case t.Name == "vector":
		if n, ok := innerNumber(t.Inner); ok && group == nil && t.Param == nil {
			return Vector(n), nil
		}
		return nil, refuse(ErrSyntax, at, "vector takes a number")
	case slices.Contains(vectorFuncs, t.Name):
		return vectorCall(at, t, group)
	case slices.Contains(countFuncs, t.Name), slices.Contains(unwrapFuncs, t.Name):
		return rangeCall(at, t, group)
	}
	return nil, refuse(ErrSyntax, at, "unknown function %q; there are %s", t.Name, strings.Join(slices.Concat(vectorFuncs, countFuncs, unwrapFuncs[:len(unwrapFuncs)-1]), ", "))
}

func innerNumber(t *metricTerm) (float64, bool) {
	if t == nil {
		return 0, false
	}
	e, err := metric(t)
	n, ok := e.(Number)
	return float64(n), ok && err == nil
}

func grouping(at lexer.Position, t *callTerm) (*Grouping, error) {
	g := t.Before
	switch {
	case g == nil:
		g = t.After
	case t.After != nil:
		return nil, refuse(ErrSyntax, at, "%s is grouped twice", t.Name)
	}
	if g == nil {
		return nil, nil
	}
	return &Grouping{Without: g.Kind == "without", Labels: g.Labels}, nil
}

func vectorCall(at lexer.Position, t *callTerm, group *Grouping) (Expr, error) {
	v := &VectorAggregation{Func: t.Name, Group: group}
	if t.Inner == nil {
		return nil, refuse(ErrSyntax, at, "%s takes an aggregation over a range, such as %[1]s(count_over_time({…}[5m]))", t.Name)
	}
	ranked := v.ranks()
	if ranked != (t.Param != nil) {
		return nil, refuse(ErrSyntax, at, "topk and bottomk take how many, and the others do not: topk(5, …)")
	}
	var err error
	if ranked {
		if v.Param, err = strconv.Atoi(*t.Param); err != nil || v.Param < 1 {
			return nil, refuse(ErrSyntax, at, "%s takes a whole number from 1, not %s", t.Name, *t.Param)
		}
	}
	if v.Inner, err = metric(t.Inner); err != nil {
		return nil, err
	}
	if _, scalar := v.Inner.(Number); scalar {
		return nil, refuse(ErrSyntax, at, "%s takes series, not a number", t.Name)
	}
	return v, nil
}

func rangeCall(at lexer.Position, t *callTerm, group *Grouping) (Expr, error) {
	if t.Range == nil {
		return nil, refuse(ErrSyntax, at, "%s takes a selector with a range, such as %[1]s({service=\"api\"}[5m])", t.Name)
	}
	a := &RangeAggregation{Func: t.Name, Group: group}
	var err error
	if a.Pipeline, err = pipeline(&logTerm{t.Range.Log.Selector, slices.Concat(t.Range.Log.Stages, t.Range.Stages)}); err != nil {
		return nil, err
	}
	if a.Range, err = duration(t.Range.Range); err != nil || a.Range <= 0 {
		return nil, refuse(ErrSyntax, t.Range.Pos, "%s is not a range, such as 5m", t.Range.Range)
	}
	if t.Range.Offset != "" && t.Range.Late != "" {
		return nil, refuse(ErrSyntax, t.Range.Pos, "the range has two offsets")
	}
	if offset := t.Range.Offset + t.Range.Late; offset != "" {
		if a.Offset, err = duration(offset); err != nil {
			return nil, refuse(ErrSyntax, t.Range.Pos, "%s is not an offset, such as 5m", offset)
		}
	}
	unwrapped := a.Pipeline.Unwrap != nil
	switch {
	case unwrapped && !slices.Contains(unwrapFuncs, a.Func):
		return nil, refuse(ErrSyntax, at, "%s counts lines and takes no unwrap", a.Func)
	case !unwrapped && !slices.Contains(countFuncs, a.Func):
		return nil, refuse(ErrSyntax, at, "%s takes values: write | unwrap label before the range", a.Func)
	case group != nil && (!unwrapped || a.Func == "sum_over_time" || a.Func == "rate"):
		return nil, refuse(ErrSyntax, at, "%s is not grouped itself: write sum by (…) (%[1]s(…))", a.Func)
	case (a.Func == "quantile_over_time") != (t.Param != nil):
		return nil, refuse(ErrSyntax, at, "quantile_over_time takes a number from 0 to 1, and the others do not: quantile_over_time(0.99, …)")
	}
	if t.Param != nil {
		if a.Param, err = strconv.ParseFloat(*t.Param, 64); err != nil || a.Param < 0 || a.Param > 1 {
			return nil, refuse(ErrSyntax, at, "quantile_over_time takes a number from 0 to 1, not %s", *t.Param)
		}
	}
	return a, nil
}

// unquote returns what a text says.
func unquote(text string) (string, error) {
	if strings.HasPrefix(text, "`") {
		return strings.Trim(text, "`"), nil
	}
	return strconv.Unquote(text)
}

// anchored is a regular expression that is about a whole value, as matchers of labels are.
func anchored(text string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(text); err != nil { // else parentheses of text could close those around it
		return nil, err
	}
	return regexp.Compile("^(?s:" + text + ")$")
}
