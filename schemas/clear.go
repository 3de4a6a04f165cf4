package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// Clear returns what clearing fields is in ClickHouse: assignments of an UPDATE, and
// the condition under which a row still has something to clear.
//
// A field that lies inside a JSON text cannot be taken out of it there, so the whole
// text is cleared, in a column as in an attribute. Of AttrRest the members that are
// covered go; all of it, when ClickHouse cannot read it.
func (t *Topic) Clear(fields []string) (assignments, condition string) {
	c := t.clearingOf(fields)
	return strings.Join(c.set, ", "), strings.Join(c.where, " OR ")
}

func (t *Topic) clearingOf(fields []string) *clearing {
	var c clearing
	for _, f := range t.clearedNames(fields) {
		if f == ColAttributes {
			c.all = true
			continue
		}
		name, attribute := ruleName(f)
		c.names = append(c.names, aliases(name)...)
		for _, column := range t.textColumns() {
			if strings.HasPrefix(name, column) && len(name) > len(column) && isNameEnd(name[len(column)]) && !attribute {
				col := QuoteName(column)
				c.clear(column, fmt.Sprintf("if(%s, '', %s)", jsonTextSQL(col), col), jsonTextSQL(col))
			}
		}
		if attribute {
			continue
		}
		if i := slices.IndexFunc(t.Fields, func(p Field) bool { return p.Name == name }); i >= 0 {
			empty := t.Fields[i].DefaultSQL()
			c.clear(name, empty, QuoteName(name)+" != "+empty)
		} else if slices.Contains(reservedColumns, name) {
			c.clear(name, "''", QuoteName(name)+" != ''")
		}
	}
	attributes := QuoteName(ColAttributes)
	switch {
	case c.all:
		c.clear(ColAttributes, "map()", "notEmpty("+attributes+")")
	case len(c.names) > 0:
		c.clear(ColAttributes, c.clearedMap(attributes), c.inMap(attributes))
	}
	return &c
}

// clearedNames are the names, and the other ones of fields that have two and are
// covered by one of them.
func (t *Topic) clearedNames(fields []string) []string {
	var rules []Private
	for _, f := range fields {
		rules = append(rules, Private{Field: f})
	}
	fields = slices.Clone(fields)
	for _, p := range t.underBothNames(rules)[len(rules):] {
		fields = append(fields, p.Field)
	}
	return fields
}

// textColumns are the columns that may hold a JSON text.
func (t *Topic) textColumns() []string {
	columns := []string{ColLevel, ColService, ColType, ColUserID, ColTraceID, ColSpanID, ColMessage}
	for _, f := range t.Fields {
		if f.Type.IsText() {
			columns = append(columns, f.Name)
		}
	}
	return columns
}

// clearing is the statement being put together.
type clearing struct {
	names      []string // plain, of attributes
	all        bool     // of the attributes
	done       []string // columns
	set, where []string
}

// clear adds a column's assignment; the first of a column holds.
func (c *clearing) clear(column, value, condition string) {
	if slices.Contains(c.done, column) {
		return
	}
	c.done = append(c.done, column)
	c.set = append(c.set, QuoteName(column)+" = "+value)
	c.where = append(c.where, condition)
}

// covered is the SQL of ruleNames.rule: whether one of the names covers the text
// that an expression has.
func (c *clearing) covered(k string) string {
	name := plainNameSQL(k)
	var b strings.Builder
	for i, n := range c.names {
		if i > 0 {
			b.WriteString(" OR ")
		}
		fmt.Fprintf(&b, "startsWith(%s, %s) AND substring(%s, %d, 1) IN (%s)", name, QuoteText(n), name, len(n)+1, nameEndsSQL)
	}
	return "(" + b.String() + ")"
}

// above is the SQL of ruleNames.below: whether a name lies inside what the
// expression names.
func (c *clearing) above(k string) string {
	// Members of a wrapper count as the event's own.
	return onceIn(k, append(c.outer(), "''", QuoteText(ColAttributes)))
}

// goes is whether an attribute k with the value v goes whole.
func (c *clearing) goes() string {
	return fmt.Sprintf("(%s OR %s AND %s OR %s AND (NOT isValidJSON(v) OR JSONType(v) != 'Object'))", c.covered("k"), c.above("k"), jsonTextSQL("v"), restSQL)
}

// restKept are the members of AttrRest that stay.
func (c *clearing) restKept() string {
	return fmt.Sprintf("arrayFilter(m -> NOT (%s OR %s AND %s), JSONExtractKeysAndValuesRaw(v))", c.covered("(m.1)"), c.above("(m.1)"), jsonTextSQL("replaceRegexpOne(m.2, '^\"', '')"))
}

func (c *clearing) clearedMap(attributes string) string {
	rest := fmt.Sprintf("concat('{', arrayStringConcat(arrayMap(m -> concat(toJSONString(m.1), ':', m.2), %s), ','), '}')", c.restKept())
	return fmt.Sprintf("mapApply((k, v) -> (k, if(%s AND %s, %s, v)), mapFilter((k, v) -> NOT %s, %s))", restSQL, c.restChanges(), rest, c.goes(), attributes)
}

func (c *clearing) restChanges() string {
	return fmt.Sprintf("length(%s) != length(JSONExtractKeysAndValuesRaw(v))", c.restKept())
}

func (c *clearing) inMap(attributes string) string {
	return fmt.Sprintf("arrayExists((k, v) -> %s OR %s AND %s, mapKeys(%s), mapValues(%s))", c.goes(), restSQL, c.restChanges(), attributes, attributes)
}

// The SQL of plainName, nameEnds, isJSONText, and of a name that is AttrRest.
var (
	nameEndsSQL = func() string {
		ends := []string{"''"}
		for i := range len(nameEnds) {
			ends = append(ends, QuoteText(nameEnds[i:i+1]))
		}
		return strings.Join(ends, ", ")
	}()
	restSQL = fmt.Sprintf("match(%s, '^%s(#|$)')", plainNameSQL("k"), AttrRest)
)

func plainNameSQL(k string) string {
	return fmt.Sprintf(`replaceRegexpOne(lower(%s), '^([. \\t\\x00]|#[^.]*(\\.|$)|(%s|%s)#*\\.)+', '')`, k, ColAttributes, AttrRest)
}

func jsonTextSQL(v string) string {
	return fmt.Sprintf(`match(%s, '^[ \\t\\r\\n]*[{\\[]')`, v)
}
