package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// UseSQL is a question to ClickHouse about the rows of a topic's table, as columns of
// one SELECT.
type UseSQL struct {
	// Rules has, for each of the topic's PII, an expression that counts rows with a
	// name under the rule; "" where it cannot be told, as of a column that every event
	// has. Near is the names that end as the rule's does and are not under it.
	Rules, Near []string
	// Misfits counts, for each of Fields, rows that have the field's name among the
	// attributes, where a value is kept that is not of the field's type, or that came
	// before the field was promoted.
	Misfits []string
}

// nearNames bounds the names that UseSQL lists for a rule.
const nearNames = 3

// Uses asks what the topic's rules and fields meet.
func (t *Topic) Uses() UseSQL {
	var u UseSQL
	keys := "mapKeys(" + QuoteName(ColAttributes) + ")"
	for _, p := range t.PII {
		name, _ := ruleName(p.Field)
		c := clearing{names: aliases(name)}
		count, near := "", "[]"
		if !t.hasColumn(name) && !t.fillsColumn(p) {
			count = fmt.Sprintf("countIf(arrayExists(k -> %s, %s))", c.covered("k"), keys)
			if above := c.outer(); len(above) > 0 {
				count = fmt.Sprintf("countIf(arrayExists(k -> %s OR %s, %s))", c.covered("k"), onceIn("k", above), keys)
			}
			near = fmt.Sprintf("groupUniqArrayArray(%d)(arrayFilter(k -> endsWith(lower(k), %s), %s))", nearNames, QuoteText("."+name), keys)
		}
		u.Rules, u.Near = append(u.Rules, count), append(u.Near, near)
	}
	for _, f := range t.Fields {
		kept := fmt.Sprintf("%s[%s] != ''", QuoteName(ColAttributes), QuoteText(f.Name))
		if f.From != "" {
			kept += fmt.Sprintf(" OR %s[%s] != ''", QuoteName(ColAttributes), QuoteText(f.From))
		}
		u.Misfits = append(u.Misfits, "countIf("+kept+")")
	}
	return u
}

// hasColumn reports whether every event has a column of that name.
func (t *Topic) hasColumn(name string) bool {
	for _, c := range t.FrameColumns(t.Version) {
		if c.Name == name {
			return true
		}
	}
	return false
}

// fillsColumn reports whether what the rule covers may be in a column under another name.
func (t *Topic) fillsColumn(p Private) bool {
	names := namesUnder([]Private{p})
	return slices.ContainsFunc(t.Fields, func(f Field) bool {
		_, ruled := names.rule(f.From)
		return f.From != "" && ruled
	})
}

// outer are the names inside whose JSON text one of the names lies, quoted.
func (c *clearing) outer() []string {
	var outer []string
	for _, n := range c.names {
		for i := range n {
			if i > 0 && isNameEnd(n[i]) {
				outer = append(outer, QuoteText(n[:i]))
			}
		}
	}
	return outer
}

func onceIn(k string, names []string) string {
	return fmt.Sprintf("splitByChar('#', %s)[1] IN (%s)", plainNameSQL(k), strings.Join(names, ", "))
}
