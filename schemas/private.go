package schemas

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// PrivacyRule is what becomes of a field before an event enters a frame.
type PrivacyRule string

// The privacy rules. A value that is not what a rule is for (no address, no
// coordinate) is dropped: it cannot be told what it would give away.
const (
	// PrivacyDrop: the field is left empty. Of an attribute the rule's name stays,
	// without a value, so that doctor can tell a rule that never matches.
	PrivacyDrop PrivacyRule = "drop"
	// PrivacyTruncateIP: an address keeps its network, /24 of IPv4 and /48 of
	// IPv6; a port is left out.
	PrivacyTruncateIP PrivacyRule = "truncate_ip"
	// PrivacyHash: HMAC-SHA-256 of the text with the key, its first 128 bits in
	// HashDigits hex digits. The same text gives the same digits in every field
	// and topic, for as long as the key is the same. Empty stays empty.
	PrivacyHash PrivacyRule = "hash"
	// PrivacyCoarseLocation: a coordinate, or two with a comma between, is rounded
	// to the grid. Names of towns, regions and countries stay.
	PrivacyCoarseLocation PrivacyRule = "coarse_location"

	// PrivacyApplied: the field's rule was applied before, and the field stays as it is (RulesAfter).
	PrivacyApplied PrivacyRule = "applied"
)

// PrivacyRules lists every rule, for messages and help.
var PrivacyRules = []PrivacyRule{PrivacyDrop, PrivacyTruncateIP, PrivacyHash, PrivacyCoarseLocation}

const (
	// HashDigits is the length of a hashed value: 128 bits, so that among 10¹²
	// different values two alike are less likely than one in 10¹⁴.
	HashDigits = 32
	// MinPrivacyKeyBytes of a key: less can be guessed.
	MinPrivacyKeyBytes = 16
	// DefaultGrid is about 11 km: a town, and not a street.
	DefaultGrid = 0.1
)

// Private is the privacy rule of one field and of every name derived from it
// (see RuleNames).
type Private struct {
	// Field is a column (user_id, message or msg, service, trace_id, span_id) with
	// the attributes of its name, or else an attribute, promoted or not.
	// "attributes.x" is the attribute x alone, whatever columns there are.
	Field string      `json:"field" yaml:"field"`
	Rule  PrivacyRule `json:"rule" yaml:"rule"`
	// Grid of coarse_location in degrees; 0: DefaultGrid.
	Grid float64 `json:"grid,omitempty" yaml:"grid,omitempty"`
	// Since is the schema version that brought the rule, and Until, of a rule that was taken back,
	// the one that did; 0: the first, or none. Set by Topic.Evolve.
	Since int `json:"since,omitempty" yaml:"-"`
	Until int `json:"until,omitempty" yaml:"-"`
}

// String is field:rule, for people.
func (p Private) String() string {
	if p.Grid != 0 {
		return fmt.Sprintf("%s:%s(%g)", p.Field, p.Rule, p.Grid)
	}
	return p.Field + ":" + string(p.Rule)
}

// PrivateColumns are the columns a rule may name.
var PrivateColumns = []string{ColUserID, ColMessage, ColService, ColTraceID, ColSpanID}

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
		case key == "" || len(key) > MaxAttrKeyBytes:
			return fmt.Errorf("pii field %q must have 1 to %d bytes", p.Field, MaxAttrKeyBytes)
		case !attribute && word == ColTs:
			return fmt.Errorf("pii field %q cannot have a rule: it is read as the event's time. Write %s.%s for an attribute of that name", p.Field, ColAttributes, key)
		case !attribute && slices.Contains(reservedColumns, key) && !slices.Contains(PrivateColumns, key):
			return fmt.Errorf("pii field %q cannot have a rule; of the columns only %s can", p.Field, strings.Join(PrivateColumns, ", "))
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

// WithGrid returns the rule under its plain name, with its grid.
func WithGrid(p Private, name string) Private {
	p.Field = name
	if p.Grid == 0 {
		p.Grid = DefaultGrid
	}
	return p
}

// RuleOf returns the rule that covers a field, "" when none does.
func (t *Topic) RuleOf(field string) PrivacyRule {
	p, _ := NamesUnder(t.EitherNameRules()).Rule(field)
	return p.Rule
}
