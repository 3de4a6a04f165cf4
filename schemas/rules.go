package schemas

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// Check reports why e cannot be accepted into the topic at now (unix ns), or nil: its
// limits (Event.Validate), and the rules of the topic's kind. tsNs is the event's time.
//
// Texts of errors are copies: an event that nothing keeps costs its caller no allocation.
func (t *Topic) Check(e *Event, tsNs, nowNs int64) error {
	if err := e.validate(tsNs, nowNs, t.MaxFuture()); err != nil {
		return err
	}
	if err := t.checkKind(e, tsNs); err != nil {
		return err
	}
	return t.checkDescribed(e)
}

// checkKind holds an event to the rules of the topic's kind.
func (t *Topic) checkKind(e *Event, tsNs int64) error {
	s := t.Spec()
	if len(s.Fields) == 0 && len(s.Rules) == 0 {
		return nil
	}
	if err := t.checkFields(e); err != nil {
		return err
	}
	for i := range s.Rules {
		if err := t.checkRule(&s.Rules[i], e, tsNs); err != nil {
			return err
		}
	}
	if s.Sorted {
		if err := checkLabels(e.Attrs); err != nil {
			return err
		}
	}
	return nil
}

// checkFields holds promoted fields to their types: a value that does not fit would go to
// the attributes, and the column would say zero.
func (t *Topic) checkFields(e *Event) error {
	for i := range t.Fields {
		f := &t.Fields[i]
		seen := false
		for k := range e.Attrs {
			a := &e.Attrs[k]
			if !f.Takes(a.Key) {
				if isSecond(a.Key, f.Name) {
					return fmt.Errorf("%w: %s is given twice", ErrValue, f.Name)
				}
				continue
			}
			if seen {
				return fmt.Errorf("%w: %s is given twice", ErrValue, f.Name)
			}
			if seen = true; !a.Fits(f.Type) {
				return fmt.Errorf("%w: %s is %.80q, it must be %s", ErrValue, f.Name, strings.Clone(a.Text()), TypeNouns[f.Type])
			}
		}
	}
	return nil
}

// isSecond reports whether a name is that of a JSON key that came again: name#2.
func isSecond(key, name string) bool {
	rest, ok := strings.CutPrefix(key, name)
	return ok && strings.HasPrefix(rest, "#")
}

// TypeNouns say what a value of each type is.
var TypeNouns = map[FieldType]string{
	TypeString: "a text", TypeLowCardinality: "a text", TypeInt64: "a whole number", TypeFloat64: "a number",
	TypeBool: "true or false", TypeTimestamp: "a time", TypeJSON: "JSON", TypeDecimal: "a number of at most 20 digits before the point and 18 after it",
}

// Fits reports whether the value is one of the type.
func (a *Attr) Fits(t FieldType) (ok bool) {
	switch t {
	case TypeInt64:
		_, ok = a.AsInt64()
	case TypeFloat64:
		_, ok = a.AsFloat64()
	case TypeBool:
		_, ok = a.AsBool()
	case TypeTimestamp:
		_, ok = a.AsTime()
	case TypeDecimal:
		_, ok = a.AsDecimal()
	case TypeJSON:
		switch a.kind {
		case KindString:
			ok = a.str == "" || json.Valid([]byte(strings.Clone(a.str)))
		case KindFloat64:
			f := math.Float64frombits(a.num)
			ok = !math.IsNaN(f) && !math.IsInf(f, 0)
		default:
			ok = a.kind != KindTime // whose text has no quotes
		}
	default:
		ok = true
	}
	return ok
}

// checkRule holds an event to one rule.
func (t *Topic) checkRule(rule *kinds.Rule, e *Event, tsNs int64) error {
	a, text, have := t.valueOf(e, rule.Column)
	if rule.Present && !have {
		if err := t.missing(rule, e); err != nil {
			return err
		}
	}
	if !have {
		text = ""
	}
	if rule.NotEmpty && text == "" {
		return EmptyValue(rule.Column)
	}
	if err := CheckWord(rule, text); err != nil {
		return err
	}
	if a == nil && rule.NotBelow != "" {
		zero := Float64(rule.Column, 0) // as its frame has it
		a = &zero
	}
	if a == nil {
		return nil
	}
	if rule.Lo != 0 || rule.Hi != 0 {
		n, _ := a.AsInt64()
		if err := CheckWhole(rule, n); err != nil {
			return err
		}
	}
	if rule.Exact && a.isRounded() {
		n, _ := a.AsInt64()
		return fmt.Errorf("%w: %s is %d, whole numbers must be -%d to %d, which the column has exactly", ErrValue, rule.Column, n, kinds.MaxExact, kinds.MaxExact)
	}
	if rule.Finite {
		v, _ := a.AsFloat64()
		least := math.Inf(-1)
		if rule.NotBelow != "" {
			least = 0
			if other, _, have := t.valueOf(e, rule.NotBelow); have {
				least, _ = other.AsFloat64()
			}
		}
		if err := CheckNumber(rule, v, least); err != nil {
			return err
		}
	}
	if rule.BucketsOf != "" {
		sum := int64(0)
		if other, _, have := t.valueOf(e, rule.BucketsOf); have {
			sum, _ = other.AsInt64()
		}
		return CheckBuckets(rule, []byte(text), sum)
	}
	if rule.NotAfter != "" {
		at, _ := a.AsTime()
		limit := tsNs
		if rule.NotAfter != ColTs {
			other, _, have := t.valueOf(e, rule.NotAfter)
			if !have || other == nil {
				return nil
			}
			limit, _ = other.AsTime()
		}
		return CheckNotAfter(rule, at, limit)
	}
	return nil
}

// valueOf returns an event's value of a column: as an attribute for a promoted field, nil
// for a base column. have is false when the event lacks it.
func (t *Topic) valueOf(e *Event, column string) (a *Attr, text string, have bool) {
	i := t.field(column)
	if i < 0 {
		text = e.text(column)
		return nil, text, text != ""
	}
	for k := range e.Attrs {
		if t.Fields[i].Takes(e.Attrs[k].Key) {
			a = &e.Attrs[k]
			if t.Fields[i].Type.IsText() {
				text = a.Text()
			}
			return a, text, true
		}
	}
	return nil, "", false
}

// EmptyValue is the error of a column that may not be empty.
func EmptyValue(column string) error { return fmt.Errorf("%w: %s is empty", ErrValue, column) }

// CheckWord holds a text to the words that a rule allows.
func CheckWord(rule *kinds.Rule, text string) error {
	if len(rule.OneOf) == 0 || slices.Contains(rule.OneOf, text) {
		return nil
	}
	return fmt.Errorf("%w: %s is %.80q, it must be one of %q", ErrValue, rule.Column, strings.Clone(text), rule.OneOf)
}

// missing is the error of a column that an event must bring; nil when it brings the other one
// that would do.
func (t *Topic) missing(rule *kinds.Rule, e *Event) error {
	if rule.Or == "" {
		return fmt.Errorf("%w: %s is missing", ErrValue, rule.Column)
	}
	if _, _, have := t.valueOf(e, rule.Or); have {
		return nil
	}
	return fmt.Errorf("%w: %s is missing, and so is %s", ErrValue, rule.Column, rule.Or)
}

// CheckWhole holds a whole number to the range of a rule.
func CheckWhole(rule *kinds.Rule, n int64) error {
	if n >= rule.Lo && n <= rule.Hi {
		return nil
	}
	return fmt.Errorf("%w: %s is %d, it must be %d to %d", ErrValue, rule.Column, n, rule.Lo, rule.Hi)
}

// isRounded reports whether a whole number is not one that a float64 has exactly.
func (a *Attr) isRounded() bool {
	n, whole := a.AsInt64()
	return whole && (n > kinds.MaxExact || n < -kinds.MaxExact)
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// CheckNumber holds a number to a rule; least is the value of the column that it may not be
// below.
func CheckNumber(rule *kinds.Rule, v, least float64) error {
	switch {
	case !isFinite(v):
		return fmt.Errorf("%w: %s is %g, it must be a finite number", ErrValue, rule.Column, v)
	case rule.NotNegative && v < 0:
		return fmt.Errorf("%w: %s is %g, it must not be below zero", ErrValue, rule.Column, v)
	case rule.NotBelow != "" && v < least:
		return fmt.Errorf("%w: %s is %g, less than %s, which is %g", ErrValue, rule.Column, v, rule.NotBelow, least)
	}
	return nil
}

// CheckNotAfter holds a time (unix ns) to the one that it may not be after.
func CheckNotAfter(rule *kinds.Rule, at, limit int64) error {
	if at <= limit {
		return nil
	}
	return fmt.Errorf("%w: %s is %s, later than %s, which is %s", ErrValue, rule.Column,
		time.Unix(0, at).UTC().Format(time.RFC3339Nano), rule.NotAfter, time.Unix(0, limit).UTC().Format(time.RFC3339Nano))
}
