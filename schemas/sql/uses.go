package sql

import (
	"fmt"
	"github.com/almanac-events/almanac/schemas"
)

// UseSQL is a question to ClickHouse about the rows of a topic's table, as columns of
// one SELECT.
type UseSQL struct {
	// Rules has, for each of the topic's PII, an expression that counts rows with a
	// name under the rule; "" where it cannot be told, as of a column that every event
	// has. Near is the names that end as the rule's does and are not under it.
	Rules, Near []string
	// Misfits counts, for each of Fields, rows that have the field's name among the
	// attributes, where a value is kept that is not of the field's type.
	Misfits []string
}

// nearNames bounds the names that UseSQL lists for a rule.
const nearNames = 3

// Uses asks what the topic's rules and fields meet.
func Uses(t *schemas.Topic) UseSQL {
	var u UseSQL
	keys := "mapKeys(" + QuoteName(schemas.ColAttributes) + ")"
	for _, use := range t.RuleUses() {
		names, count, near := covering(use.Names), "", "[]"
		if !use.Column {
			count = fmt.Sprintf("countIf(arrayExists(k -> %s, %s))", names.covered("k"), keys)
			if above := names.outer(); len(above) > 0 {
				count = fmt.Sprintf("countIf(arrayExists(k -> %s OR %s, %s))", names.covered("k"), onceIn("k", above), keys)
			}
			near = fmt.Sprintf("groupUniqArrayArray(%d)(arrayFilter(k -> endsWith(lower(k), %s), %s))", nearNames, QuoteText("."+use.Name), keys)
		}
		u.Rules, u.Near = append(u.Rules, count), append(u.Near, near)
	}
	for i := range t.Fields {
		u.Misfits = append(u.Misfits, "countIf("+MisfitSQL(t, &t.Fields[i])+")")
	}
	return u
}
