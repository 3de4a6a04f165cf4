package schemas

import (
	"fmt"
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

// WithGrid returns the rule under its plain name, with its grid.
func WithGrid(p Private, name string) Private {
	p.Field = name
	if p.Grid == 0 {
		p.Grid = DefaultGrid
	}
	return p
}
