package schemas

import "slices"

// changes reports whether the texts of a column do not stay as they come: a rule, or
// anonymise, is for it. Those of a nil topic stay.
func (t *Topic) changes(column string) bool {
	if t == nil || len(t.PII) == 0 && !t.Anonymise.On() {
		return false
	}
	_, ruled := NamesUnder(t.PII).Rule(column)
	return ruled || t.Anonymise.On() && slices.Contains(t.Anonymise.Fields, column)
}

// OtherName returns the name of the attribute that keeps a text which could have filled a
// column, under another name than the column's: user.id beside a user_id. Where the
// column's texts do not stay as they come, neither does this one: its name is derived from
// the column's then, so that the column's rule covers it. A nil topic is one without rules.
func (t *Topic) OtherName(column, name string) string {
	if !t.changes(column) {
		return name
	}
	if _, derived := NamesUnder([]Private{{Field: column}}).Rule(name); derived {
		return name
	}
	return column + "." + name
}

// RulesUser reports whether user ids do not stay as they come.
func (t *Topic) RulesUser() bool { return t.changes(ColUserID) }
