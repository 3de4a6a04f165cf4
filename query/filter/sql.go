package filter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// SQL is the filter as a ClickHouse condition, "1" when it matches every event,
// and its parameters: p1, p2, … with the values encoded as ClickHouse reads
// them (ParamString, ParamArray). Over HTTP each goes into the URL as
// param_p1=…; clickhouse-go takes the map as clickhouse.Parameters, over either
// protocol. Both are new on each call.
func (e *Expr) SQL() (where string, params map[string]string) {
	w := sqlWriter{params: map[string]string{}}
	if e.All() {
		return "1", w.params
	}
	w.node(e.root)
	return w.b.String(), w.params
}

// sqlWriter writes constants, the columns' names, and the places of parameters.
type sqlWriter struct {
	b      strings.Builder
	params map[string]string
}

func (w *sqlWriter) node(n node) {
	switch n := n.(type) {
	case logical:
		for i, k := range n.kids {
			switch {
			case i == 0:
				w.b.WriteByte('(')
			case n.or:
				w.b.WriteString(" OR ")
			default:
				w.b.WriteString(" AND ")
			}
			w.node(k)
		}
		w.b.WriteByte(')')
	case negation:
		w.b.WriteString("NOT (")
		w.node(n.kid)
		w.b.WriteByte(')')
	case compare:
		w.compare(n)
	}
}

func (w *sqlWriter) compare(n compare) {
	if n.op == opExists {
		if n.field.typ == typeAttr {
			w.b.WriteString("mapContains(`" + schemas.ColAttributes + "`, " + w.text(n.field.key) + ")")
		} else {
			w.b.WriteString("notEmpty(`" + n.field.name + "`)")
		}
		return
	}
	left, typ := "`"+n.field.name+"`", typeFacts[n.field.typ].sql
	if n.field.typ == typeAttr {
		left += "[" + w.text(n.field.key) + "]"
	}
	switch {
	case n.op == opIn || n.op == opNotIn:
		texts := make([]string, len(n.values))
		for i, v := range n.values {
			texts[i] = v.param
		}
		w.b.WriteString(left + " " + string(n.op) + " " + w.param("Array("+typ+")", ParamArray(texts, typeFacts[n.field.typ].quoted)))
	case n.op == opContains:
		w.b.WriteString("position(" + left + ", " + w.text(n.values[0].param) + ") > 0")
	case n.op == opMatches:
		w.b.WriteString("match(" + left + ", " + w.text(n.values[0].param) + ")")
	case n.numeric(n.values[0]):
		// NULL, for what is not a number, would make NOT unknown.
		v := n.values[0]
		w.b.WriteString("if(match(" + left + ", '^[+-]?[0-9]{1," + strconv.Itoa(WholeDigits) + "}$'), toInt256OrZero(" + left + ") " + string(n.op) + " " + w.param("Int256", wholeEdge(n.op, v.src)) +
			", ifNull(toFloat64OrNull(" + left + ") " + string(n.op) + " " + w.param("Float64", v.param) + ", false))")
	default:
		w.b.WriteString(left + " " + string(n.op) + " " + w.param(typ, ParamString(n.values[0].param)))
	}
}

func (w *sqlWriter) text(s string) string { return w.param("String", ParamString(s)) }

func (w *sqlWriter) param(typ, encoded string) string {
	name := "p" + strconv.Itoa(len(w.params)+1)
	w.params[name] = encoded
	return "{" + name + ":" + typ + "}"
}

// Indexes are the columns by which ClickHouse can skip data for this filter, of
// those that the topic's table has an index on. Each bounds every match; empty
// means that every row in the asked range is read.
func (e *Expr) Indexes(indexed []sql.Index) []string {
	if e.All() {
		return nil
	}
	var found []string
	for _, index := range indexed {
		if bounds(e.root, index) {
			found = append(found, index.Column)
		}
	}
	return found
}

// bounds says that every event n matches fulfils a condition on index.Column by which the index skips
// rows; an index without an order knows equal values alone. What is negated is not looked into.
func bounds(n node, index sql.Index) bool {
	switch n := n.(type) {
	case logical:
		if n.or {
			return !slices.ContainsFunc(n.kids, func(k node) bool { return !bounds(k, index) })
		}
		return slices.ContainsFunc(n.kids, func(k node) bool { return bounds(k, index) })
	case compare:
		switch n.op {
		case opEq, opIn:
			return n.field.name == index.Column
		case opLt, opLe, opGt, opGe:
			return n.field.name == index.Column && index.Ordered
		}
	}
	return false
}
