package schemas

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// mustStay is the column that a rule for key changes and that the topic's kind requires or
// that tells events apart; "" when there is none.
func (t *Topic) mustStay(key string, attribute bool) string {
	columns := slices.Clone(t.Once())
	for _, rule := range t.Spec().Rules {
		if rule.Present || rule.NotEmpty {
			columns = append(columns, rule.Column)
		}
	}
	for _, column := range columns {
		if t.ruleChanges(column, key, attribute) {
			return column
		}
	}
	return ""
}

// validatePrivacy reports what is wrong with the rules.
func (t *Topic) validatePrivacy() error {
	if len(t.PII) > MaxFields {
		return fmt.Errorf("pii names %d fields, the limit is %d", len(t.PII), MaxFields)
	}
	seen := map[string]bool{}
	for _, p := range t.PII {
		key, attribute := RuleName(p.Field)
		word := JSONWords[key]
		switch {
		case key == "" || len(key) > MaxAttrKeyBytes-AttrNumberBytes: // a longer name that comes again is cut, and no rule would know it
			return fmt.Errorf("pii field %q must have 1 to %d bytes", p.Field, MaxAttrKeyBytes-AttrNumberBytes)
		case !attribute && word == ColTs:
			return fmt.Errorf("pii field %q cannot have a rule: it is read as the event's time. Write %s.%s for an attribute of that name", p.Field, ColAttributes, key)
		case !attribute && slices.Contains(reservedColumns, key) && !slices.Contains(PrivateColumns, key):
			return fmt.Errorf("pii field %q cannot have a rule; of the columns only %s can", p.Field, strings.Join(PrivateColumns, ", "))
		case t.Name == TopicAlerts && (attribute || word != ColUserID && word != ColMessage):
			return fmt.Errorf("pii field %q of topic %s cannot have a rule: alerts are found again by it. Give the field of the topic that the alert's rule reads one", p.Field, TopicAlerts)
		case seen[key]:
			return fmt.Errorf("pii names field %q twice", p.Field)
		case !slices.Contains(PrivacyRules, p.Rule):
			return fmt.Errorf("pii field %q has rule %q, it must be one of %v", p.Field, p.Rule, PrivacyRules)
		case p.Grid != 0 && p.Rule != PrivacyCoarseLocation:
			return fmt.Errorf("pii field %q has a grid, which only %s has", p.Field, PrivacyCoarseLocation)
		case p.Grid < 0 || p.Grid > 90 || math.IsNaN(p.Grid):
			return fmt.Errorf("pii field %q has a grid of %g degrees, it must be above 0 and at most 90", p.Field, p.Grid)
		case p.Rule == PrivacyDrop && !t.HasIdentity() && slices.ContainsFunc(t.LaneBy, func(by string) bool { return lowerASCII(by) == key }):
			return fmt.Errorf("pii drops field %q, by which the topic's lanes are cut (lane_by); hash it instead", p.Field)
		}
		if column := t.mustStay(key, attribute); column != "" && p.Rule != PrivacyHash {
			return fmt.Errorf("pii rule %s of field %q: events of topic %q must have the column %s as it is, or are told apart by it; only %s is possible", p.Rule, p.Field, t.Name, column, PrivacyHash)
		}
		seen[key] = true
		for _, f := range t.Fields {
			text := f.Type == TypeString || f.Type == TypeLowCardinality
			if (f.Name == key || lowerASCII(f.From) == key) && !text && (p.Rule == PrivacyHash || p.Rule == PrivacyTruncateIP) {
				return fmt.Errorf("pii rule %s makes text of field %q, whose column is %s", p.Rule, p.Field, f.Type)
			}
		}
	}
	return nil
}

// NeedsPrivacyKey says whether a rule hashes.
func (t *Topic) NeedsPrivacyKey() bool {
	return slices.ContainsFunc(t.PII, func(p Private) bool { return p.Rule == PrivacyHash })
}

// RuleOf returns the rule that covers a field, "" when none does.
func (t *Topic) RuleOf(field string) PrivacyRule {
	p, _ := NamesUnder(t.EitherNameRules()).Rule(field)
	return p.Rule
}
