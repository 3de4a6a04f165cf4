package logql

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/almanac-events/almanac/query/filter"
)

// LabelFilter selects entries by their labels.
type LabelFilter struct{ Cond Cond }

func (f *LabelFilter) apply(e *Entry) bool { return f.Cond.holds(e) }

// Cond is a condition on labels.
type Cond interface{ holds(*Entry) bool }

type (
	// Any holds when one of its conditions does.
	Any []Cond
	// All holds when each of its conditions does.
	All []Cond
	// Text compares a label as text; one that is not there is empty.
	Text struct{ Matcher }
	// Compare compares a label as a number, a length of time or a size. A label that is not there, or cannot be read so,
	// fulfils no comparison.
	Compare struct {
		Name string
		Op   string // = != > >= < <=
		// Value in the unit that Kind has: itself, seconds, bytes.
		Value float64
		Kind  Kind
		// Source is the number as it was written, of KindNumber.
		Source string
	}
)

// Kind is what a value of a label is read as.
type Kind int

// Kinds of values.
const (
	KindNumber Kind = iota
	KindDuration
	KindBytes
)

func (c Any) holds(e *Entry) bool {
	for _, one := range c {
		if one.holds(e) {
			return true
		}
	}
	return false
}

func (c All) holds(e *Entry) bool {
	for _, one := range c {
		if !one.holds(e) {
			return false
		}
	}
	return true
}

func (c *Text) holds(e *Entry) bool { return c.Matches(e.Get(c.Name)) }

func (c *Compare) holds(e *Entry) bool {
	text := e.Get(c.Name)
	v, ok := read(text, c.Kind)
	if !ok {
		return false
	}
	if c.Kind == KindNumber && math.Abs(v) >= exactBelow && math.Abs(c.Value) >= exactBelow {
		if l, r, ok := wholes(text, c.Source); ok { // as a filter compares them
			_, holds := calculate(c.Op, float64(l.Cmp(r)), 0, false)
			return holds
		}
	}
	_, holds := calculate(c.Op, v, c.Value, false)
	return holds
}

// read reads a label's value.
func read(text string, kind Kind) (v float64, ok bool) {
	var err error
	switch kind {
	case KindNumber:
		v, err = float(text)
	case KindBytes:
		v, err = size(strings.TrimSpace(text))
	case KindDuration:
		v, err = measured(strings.TrimSpace(text), units, false)
		if v /= 1e9; err != nil {
			v, err = strconv.ParseFloat(text, 64)
		}
	}
	return v, err == nil && !math.IsNaN(v)
}

// float reads a number as ClickHouse does, which compares them where no stage stands before: no spaces, no other base than ten, no _
// between digits, and what float64 cannot hold is infinite.
func float(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	if strings.ContainsAny(text, "xXpP_") {
		err = strconv.ErrSyntax
	}
	return v, err
}

// exactBelow is where whole numbers begin that a float64 does not have.
const exactBelow = 1 << 53

// wholes reads two whole numbers; ok is false where one is not, or is longer than a filter takes.
func wholes(left, right string) (l, r *big.Int, ok bool) {
	if l, ok = whole(left); ok {
		r, ok = whole(right)
	}
	return l, r, ok
}

func whole(text string) (*big.Int, bool) {
	digits := strings.TrimLeft(text, "+-")
	if len(digits) > filter.WholeDigits || len(text) > len(digits)+1 || strings.Contains(digits, "_") {
		return nil, false
	}
	return new(big.Int).SetString(text, 10)
}

func anyOf(t *orTerm) (Cond, error) {
	var any Any
	for _, and := range t.Terms {
		var all All
		for _, c := range and.Terms {
			got, err := condition(c)
			if err != nil {
				return nil, err
			}
			all = append(all, got)
		}
		if len(all) == 1 {
			any = append(any, all[0])
		} else {
			any = append(any, all)
		}
	}
	if len(any) == 1 {
		return any[0], nil
	}
	return any, nil
}

func condition(t *condTerm) (Cond, error) {
	if t.Group != nil {
		return anyOf(t.Group)
	}
	c := t.Cond
	if c.Func != "" {
		return nil, unsupported(t.Pos, "the function "+c.Func+" in a filter of labels")
	}
	op := strings.Replace(c.Op, "==", "=", 1)
	if c.Text != nil {
		if op != "=" && op != "!=" && op != "=~" && op != "!~" {
			return nil, refuse(ErrSyntax, t.Pos, "%s compares numbers, and %s is a text", op, *c.Text)
		}
		m, err := matcher(t.Pos, c.Name, op, *c.Text)
		return &Text{m}, err
	}
	if op == "=~" || op == "!~" {
		return nil, refuse(ErrSyntax, t.Pos, "%s takes an expression in quotes", op)
	}
	return compared(t.Pos, c, op)
}

func compared(at lexer.Position, c *compTerm, op string) (Cond, error) {
	out := &Compare{Name: c.Name, Op: op}
	if c.Number != nil {
		out.Source = *c.Number
		v, err := strconv.ParseFloat(*c.Number, 64)
		if err != nil {
			return nil, refuse(ErrSyntax, at, "%s is out of range", *c.Number)
		}
		out.Value = v
		return out, nil
	}
	if ns, err := measured(*c.Unit, units, false); err == nil {
		out.Kind, out.Value = KindDuration, ns/1e9
		return out, nil
	}
	bytes, err := size(*c.Unit)
	if err != nil {
		return nil, refuse(ErrSyntax, at, "%s is neither a length of time nor a size", *c.Unit)
	}
	out.Kind, out.Value = KindBytes, bytes
	return out, nil
}

// calculate applies an operator. Of a comparison it reports whether it holds, and gives the left side, or 1 and 0.
func calculate(op string, l, r float64, asBool bool) (v float64, holds bool) {
	switch op {
	case "+":
		return l + r, true
	case "-":
		return l - r, true
	case "*":
		return l * r, true
	case "/":
		return l / r, true
	case "%":
		return math.Mod(l, r), true
	case "^":
		return math.Pow(l, r), true
	case "=", "==":
		holds = l == r
	case "!=":
		holds = l != r
	case ">":
		holds = l > r
	case ">=":
		holds = l >= r
	case "<":
		holds = l < r
	case "<=":
		holds = l <= r
	}
	switch {
	case !asBool:
		return l, holds
	case holds:
		return 1, true
	}
	return 0, true
}
