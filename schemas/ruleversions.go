package schemas

import "slices"

// A privacy rule knows the schema version that brought it, as a promoted field does. So a frame says by its
// version which rules its producer knew, and a router applies the others. None is applied twice: a hash of a
// hash would be another person.

// MaxLifted bounds the hash rules that a topic remembers after they were taken back.
const MaxLifted = 64

// Alike reports that two rules do the same, whenever they came.
func (p Private) Alike(o Private) bool {
	return p.Field == o.Field && p.Rule == o.Rule && p.Grid == o.Grid
}

// evolveRules gives the rules that want names their versions: a rule that the topic has keeps its own, and any
// other holds from the next version on. Hash rules that want no longer names are lifted by it.
func (t *Topic) evolveRules(want []Private) (rules, lifted []Private, changed bool) {
	lifted = t.Lifted
	for _, p := range want {
		if i := slices.IndexFunc(t.PII, p.Alike); i >= 0 {
			p = t.PII[i]
		} else {
			p.Since, p.Until, changed = t.Version+1, 0, true
		}
		rules = append(rules, p)
	}
	for _, p := range t.PII {
		if slices.ContainsFunc(want, p.Alike) {
			continue
		}
		changed = true
		if p.Rule == PrivacyHash {
			p.Until = t.Version + 1
			lifted = append(slices.Clone(lifted), p)
		}
	}
	return rules, lifted[max(0, len(lifted)-MaxLifted):], changed
}

// RulesAfter returns the topic with the privacy rules that a frame of schema version v was made without; nil when
// there are none. Fields whose rules were applied stay as they are.
func (t *Topic) RulesAfter(v int) *Topic {
	if !slices.ContainsFunc(t.PII, func(p Private) bool { return p.Since > v }) {
		return nil
	}
	left, missing := *t, false
	left.PII = slices.Clone(t.PII)
	for i := range left.PII {
		p := &left.PII[i]
		if p.Since <= v || slices.ContainsFunc(t.Lifted, func(l Private) bool { return l.Alike(*p) && l.Since <= v && v < l.Until }) {
			p.Rule = PrivacyApplied
		} else {
			missing = true
		}
	}
	if !missing {
		return nil
	}
	return &left
}
