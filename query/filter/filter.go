package filter

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/almanac-events/almanac/schemas"
)

// Expr is a filter that fits a topic. It does not change and may be shared. The
// nil *Expr, like an empty filter, matches every event.
type Expr struct{ root node }

// The tree. A comparison with IN has many values, with exists none.
type (
	node    interface{ print(*strings.Builder, bool) }
	logical struct {
		or   bool
		kids []node // two or more
	}
	negation struct{ kid node }
	compare  struct {
		field  field
		op     op
		values []value
	}
)

type op string

const (
	opEq       op = "="
	opNe       op = "!="
	opLt       op = "<"
	opLe       op = "<="
	opGt       op = ">"
	opGe       op = ">="
	opIn       op = "IN"
	opNotIn    op = "NOT IN"
	opContains op = "contains"
	opMatches  op = "matches"
	opExists   op = "exists"
)

// Parse reads a filter over the topic's columns. A nil topic has the columns
// every topic has. Relative times are refused: they need ParseAt.
func Parse(src string, t *schemas.Topic) (*Expr, error) { return ParseAt(src, t, time.Time{}) }

// ParseAt is Parse with a clock for relative times: -15m is fifteen minutes
// before now, fixed here, so that every page of a query asks the same.
func ParseAt(src string, t *schemas.Topic, now time.Time) (*Expr, error) {
	if strings.TrimSpace(src) == "" {
		return &Expr{}, nil
	}
	tree, err := parseText(src)
	if err != nil {
		return nil, err
	}
	c := &compiler{src: src, fields: fieldsOf(t), now: now}
	root, err := c.or(tree)
	if err != nil {
		return nil, err
	}
	return &Expr{root: root}, nil
}

// All says that the filter matches every event.
func (e *Expr) All() bool { return e == nil || e.root == nil }

// NamesAttributes reports whether the filter asks for an attribute.
func (e *Expr) NamesAttributes() bool { return !e.All() && namesAttributes(e.root) }

func namesAttributes(n node) bool {
	switch n := n.(type) {
	case logical:
		return slices.ContainsFunc(n.kids, namesAttributes)
	case negation:
		return namesAttributes(n.kid)
	case compare:
		return n.field.typ == typeAttr
	}
	return false
}

// String is the filter in one canonical spelling, which Parse reads as the same
// filter. Relative times have become absolute.
func (e *Expr) String() string {
	if e.All() {
		return ""
	}
	var b strings.Builder
	e.root.print(&b, true)
	return b.String()
}

// compiler checks the parser's tree against the topic.
type compiler struct {
	src    string
	fields map[string]field
	now    time.Time
	limit  bool // it is a row limit: an attribute that the topic promotes is its column
}

func (c *compiler) fail(at lexer.Position, kind error, format string, a ...any) error {
	return &Error{Src: c.src, Column: columnAt(c.src, at.Offset), Kind: kind, Msg: fmt.Sprintf(format, a...)}
}

func (c *compiler) or(t *orTerm) (node, error) {
	return join(true, t.Terms, func(a *andTerm) (node, error) { return join(false, a.Terms, c.not) })
}

func join[T any](or bool, terms []T, compile func(T) (node, error)) (node, error) {
	kids := make([]node, len(terms))
	for i, t := range terms {
		var err error
		if kids[i], err = compile(t); err != nil {
			return nil, err
		}
	}
	if len(kids) == 1 {
		return kids[0], nil
	}
	return logical{or: or, kids: kids}, nil
}

func (c *compiler) not(t *notTerm) (n node, err error) {
	switch {
	case t.Group != nil:
		n, err = c.or(t.Group)
	case t.Exists != nil:
		n, err = c.exists(t.Exists)
	default:
		n, err = c.compare(t.Compare)
	}
	if err == nil && len(t.Nots)%2 == 1 {
		n = negation{kid: n}
	}
	return n, err
}

func (c *compiler) exists(t *fieldTerm) (node, error) {
	f, err := c.resolve(t)
	if err != nil {
		return nil, err
	}
	switch {
	case f.typ == typeAttr || f.typ == typeText:
		return compare{field: f, op: opExists}, nil
	case f.base:
		return nil, c.fail(t.Pos, ErrType, "every event has %s", f)
	}
	return nil, c.fail(t.Pos, ErrType, "%s is the zero of its type where an event lacks it, so exists cannot tell; compare it with a value", f)
}

func (c *compiler) compare(t *comparison) (node, error) {
	f, err := c.resolve(t.Field)
	if err != nil {
		return nil, err
	}
	n := compare{field: f}
	if t.Op != nil {
		n.op = op(strings.Replace(strings.ToLower(t.Op.Word), "==", "=", 1))
		if err := c.allow(f, n.op, t.Op.Pos); err != nil {
			return nil, err
		}
		v, err := c.fit(f, t.Value)
		if err != nil {
			return nil, err
		}
		if n.numeric(v) && !v.toFloat() {
			return nil, c.fail(t.Value.Pos, ErrType, "%s is out of range", clip(v.src))
		}
		n.values = []value{v}
		if n.op == opMatches {
			if _, err := syntax.Parse(v.param, syntax.Perl); err != nil {
				return nil, c.fail(t.Value.Pos, ErrType, "%s is not a regular expression: %v", clip(v.src), err)
			}
		}
		return n, nil
	}
	if n.op = opIn; t.Not {
		n.op = opNotIn
	}
	if len(t.List) > MaxList {
		return nil, c.fail(t.List[MaxList].Pos, ErrTooLarge, "the list has %d values, the limit is %d", len(t.List), MaxList)
	}
	for _, l := range t.List {
		v, err := c.fit(f, l)
		if err != nil {
			return nil, err
		}
		n.values = append(n.values, v)
	}
	return n, nil
}

// numeric says that v, the comparison's value, compares an attribute as a number.
func (n compare) numeric(v value) bool {
	return n.field.typ == typeAttr && v.number && strings.ContainsAny(string(n.op), "<>")
}

// allow refuses operators that have no meaning for the field's type.
func (c *compiler) allow(f field, o op, at lexer.Position) error {
	switch o {
	case opContains, opMatches:
		if f.typ != typeText && f.typ != typeAttr {
			return c.fail(at, ErrType, "%s is for text, %s is %s", o, f, typeFacts[f.typ].want)
		}
	case opLt, opLe, opGt, opGe:
		if !typeFacts[f.typ].ordered {
			return c.fail(at, ErrType, "%s has no order; it takes = != IN and NOT IN", f)
		}
	}
	return nil
}
