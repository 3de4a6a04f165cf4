package schemas

import "slices"

// RuleUse is where a privacy rule of a topic may be met. By it `almanac doctor` counts the rows that
// each rule matched (sql.Uses), and warns of a rule that matched none.
type RuleUse struct {
	Name string // plain
	// Names are those the rule covers, and Column says that a column may have what it covers, of which it cannot be
	// told whether a rule met it.
	Names  []string
	Column bool
}

// RuleUses tells where each of the topic's PII may be met.
func (t *Topic) RuleUses() (uses []RuleUse) {
	for _, p := range t.PII {
		name, _ := RuleName(p.Field)
		uses = append(uses, RuleUse{Name: name, Names: aliases(name), Column: t.hasColumn(name) || t.fillsColumn(p)})
	}
	return uses
}

// hasColumn reports whether every event has a column of that name.
func (t *Topic) hasColumn(name string) bool {
	return slices.Contains(t.Columns(t.Version), name)
}

// fillsColumn reports whether what the rule covers may be in a column under another name.
func (t *Topic) fillsColumn(p Private) bool {
	names := NamesUnder([]Private{p})
	return slices.ContainsFunc(t.Fields, func(f Field) bool {
		_, ruled := names.Rule(f.From)
		return f.From != "" && ruled
	})
}
