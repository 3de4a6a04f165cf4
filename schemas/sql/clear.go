package sql

import (
	"fmt"
	"github.com/almanac-events/almanac/schemas"
	"slices"
	"strings"
)

// Clear returns what clearing fields is in ClickHouse: assignments of an UPDATE, and
// the condition under which a row still has something to clear.
//
// A field that lies inside a JSON text cannot be taken out of it there, so the whole
// text is cleared, in a column as in an attribute. Of AttrRest the members that are
// covered go; all of it, when ClickHouse cannot read it.
func Clear(t *schemas.Topic, fields []string) (assignments, condition string) {
	var set, where []string
	clearing := t.Clearing(fields)
	for _, c := range clearing.Columns {
		col, empty := QuoteName(c.Name), "''"
		if i := slices.IndexFunc(t.Fields, func(p schemas.Field) bool { return p.Name == c.Name }); i >= 0 {
			empty = t.Fields[i].DefaultSQL()
		}
		if c.Texts {
			set, where = append(set, fmt.Sprintf("%s = if(%s, '', %s)", col, jsonTextSQL(col), col)), append(where, jsonTextSQL(col))
		} else {
			set, where = append(set, col+" = "+empty), append(where, col+" != "+empty)
		}
	}
	attributes, names := QuoteName(schemas.ColAttributes), covering(clearing.Names)
	switch {
	case clearing.Attributes:
		set, where = append(set, attributes+" = map()"), append(where, "notEmpty("+attributes+")")
	case len(names) > 0:
		set, where = append(set, attributes+" = "+names.clearedMap(attributes)), append(where, names.inMap(attributes))
	}
	return strings.Join(set, ", "), strings.Join(where, " OR ")
}

// covering are plain names of attributes, with every name derived from one.
type covering []string

// covered is the SQL of schemas.RuleNames.Rule: whether one of the names covers the text
// that an expression has.
func (c covering) covered(k string) string {
	name := plainNameSQL(k)
	var b strings.Builder
	for i, n := range c {
		if i > 0 {
			b.WriteString(" OR ")
		}
		fmt.Fprintf(&b, "startsWith(%s, %s) AND substring(%s, %d, 1) IN (%s)", name, QuoteText(n), name, len(n)+1, nameEndsSQL)
	}
	return "(" + b.String() + ")"
}

// above is the SQL of schemas.RuleNames.Below: whether a name lies inside what the
// expression names.
func (c covering) above(k string) string {
	// Members of a wrapper count as the event's own.
	return onceIn(k, append(c.outer(), "''", QuoteText(schemas.ColAttributes)))
}

// outer are the names inside whose JSON text one of the names lies, quoted.
func (c covering) outer() (outer []string) {
	for _, n := range schemas.Around(c) {
		outer = append(outer, QuoteText(n))
	}
	return outer
}

// goes is whether an attribute k with the value v goes whole.
func (c covering) goes() string {
	return fmt.Sprintf("(%s OR %s AND %s OR %s AND (NOT isValidJSON(v) OR JSONType(v) != 'Object'))", c.covered("k"), c.above("k"), jsonTextSQL("v"), restSQL)
}

// restKept are the members of AttrRest that stay.
func (c covering) restKept() string {
	return fmt.Sprintf("arrayFilter(m -> NOT (%s OR %s AND %s), JSONExtractKeysAndValuesRaw(v))", c.covered("(m.1)"), c.above("(m.1)"), jsonTextSQL("replaceRegexpOne(m.2, '^\"', '')"))
}

func (c covering) clearedMap(attributes string) string {
	rest := fmt.Sprintf("concat('{', arrayStringConcat(arrayMap(m -> concat(toJSONString(m.1), ':', m.2), %s), ','), '}')", c.restKept())
	return fmt.Sprintf("mapApply((k, v) -> (k, if(%s AND %s, %s, v)), mapFilter((k, v) -> NOT %s, %s))", restSQL, c.restChanges(), rest, c.goes(), attributes)
}

func (c covering) restChanges() string {
	return fmt.Sprintf("length(%s) != length(JSONExtractKeysAndValuesRaw(v))", c.restKept())
}

func (c covering) inMap(attributes string) string {
	return fmt.Sprintf("arrayExists((k, v) -> %s OR %s AND %s, mapKeys(%s), mapValues(%s))", c.goes(), restSQL, c.restChanges(), attributes, attributes)
}

// onceIn is whether the name that an expression has, without the number of one that came twice, is among names.
func onceIn(k string, names []string) string {
	return fmt.Sprintf("splitByChar('#', %s)[1] IN (%s)", plainNameSQL(k), strings.Join(names, ", "))
}

// The SQL of PlainName, NameEnds, isJSONText, and of a name that is AttrRest.
var (
	nameEndsSQL = func() string {
		ends := []string{"''"}
		for i := range len(schemas.NameEnds) {
			ends = append(ends, QuoteText(schemas.NameEnds[i:i+1]))
		}
		return strings.Join(ends, ", ")
	}()
	restSQL = fmt.Sprintf("match(%s, '^%s(#|$)')", plainNameSQL("k"), schemas.AttrRest)
)

func plainNameSQL(k string) string {
	return fmt.Sprintf(`replaceRegexpOne(lower(%s), '^([. \\t\\x00]|#[^.]*(\\.|$)|(%s|%s)#*\\.)+', '')`, k, schemas.ColAttributes, schemas.AttrRest)
}

func jsonTextSQL(v string) string {
	return fmt.Sprintf(`match(%s, '^[ \\t\\r\\n]*[{\\[]')`, v)
}
