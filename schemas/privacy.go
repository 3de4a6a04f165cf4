package schemas

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
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
	// to the grid.
	PrivacyCoarseLocation PrivacyRule = "coarse_location"

	// privacyApplied: the field's rule was applied before, and the field stays as it is (RulesAfter).
	privacyApplied PrivacyRule = "applied"
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

	networkBits4 = 24
	networkBits6 = 48
)

// Private is the privacy rule of one field and of every name derived from it
// (see ruleNames).
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

// privateColumns are the columns a rule may name.
var privateColumns = []string{ColUserID, ColMessage, ColService, ColTraceID, ColSpanID}

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
		key, attribute := ruleName(p.Field)
		word := JSONWords[key]
		switch {
		case key == "" || len(key) > MaxAttrKeyBytes:
			return fmt.Errorf("pii field %q must have 1 to %d bytes", p.Field, MaxAttrKeyBytes)
		case !attribute && word == ColTs:
			return fmt.Errorf("pii field %q cannot have a rule: it is read as the event's time. Write %s.%s for an attribute of that name", p.Field, ColAttributes, key)
		case !attribute && slices.Contains(reservedColumns, key) && !slices.Contains(privateColumns, key):
			return fmt.Errorf("pii field %q cannot have a rule; of the columns only %s can", p.Field, strings.Join(privateColumns, ", "))
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

// CheckPrivacyKey reports what is wrong with a key; none is fine.
func CheckPrivacyKey(key []byte) error {
	if n := len(key); n > 0 && n < MinPrivacyKeyBytes {
		return fmt.Errorf("%w: %d bytes, it must have %d or more, such as `openssl rand -hex 32` makes", ErrPrivacyKey, n, MinPrivacyKeyBytes)
	}
	return nil
}

// Privacy applies a topic's rules. It may be used by many goroutines at once.
type Privacy struct {
	columns []Private
	names   ruleNames
	opened  []string // columns in whose JSON text a rule lies
	key     []byte
}

// NewPrivacy returns the rules of a topic with the key of its hashes; nil when
// there are none. Without a key, what should be hashed is dropped.
func NewPrivacy(t *Topic, key []byte) *Privacy {
	if len(t.PII) == 0 {
		return nil
	}
	r := &Privacy{names: namesUnder(t.rules()), key: slices.Clone(key)}
	for _, p := range t.PII {
		if name, attribute := ruleName(p.Field); !attribute && slices.Contains(privateColumns, name) {
			r.columns = append(r.columns, withGrid(p, name))
		}
	}
	for _, c := range []string{ColLevel, ColService, ColType, ColUserID, ColTraceID, ColSpanID, ColMessage} {
		if r.names.below(c) {
			r.opened = append(r.opened, c)
		}
	}
	return r
}

// withGrid returns the rule under its plain name, with its grid.
func withGrid(p Private, name string) Private {
	p.Field = name
	if p.Grid == 0 {
		p.Grid = DefaultGrid
	}
	return p
}

// Apply changes the event by the rules. The attributes it was given stay as they
// are: the event gets others when a rule meets one.
func (r *Privacy) Apply(e *Event) {
	for _, p := range r.columns {
		if v := e.column(p.Field); *v != "" {
			*v, _ = r.text(p, strings.Clone(*v))
		}
	}
	for _, name := range r.opened {
		if v := e.column(name); isJSONText(*v) {
			*v = r.cleanText(name, strings.Clone(*v))
		}
	}
	if !slices.ContainsFunc(e.Attrs, func(a Attr) bool { return r.meets(&a) }) {
		return
	}
	kept := make([]Attr, 0, len(e.Attrs))
	for i := range e.Attrs {
		// Of texts of their own, or the compiler would have every event's attributes
		// allocated, rules or not.
		own := e.Attrs[i].clone()
		p, ruled := r.names.rule(own.Key)
		switch {
		case !ruled && own.kind == KindString:
			own.str = r.cleanText(own.Key, own.str)
			kept = append(kept, own)
		case !ruled:
			kept = append(kept, own)
		default:
			a, ok := r.attr(p, own)
			if ok {
				kept = append(kept, a)
			} else if !slices.ContainsFunc(kept, func(k Attr) bool { return k.Key == p.Field }) {
				kept = append(kept, String(p.Field, ""))
			}
		}
	}
	e.Attrs = kept
}

// meets reports whether a rule may change the attribute.
func (r *Privacy) meets(a *Attr) bool {
	_, ruled := r.names.rule(a.Key)
	return ruled || a.kind == KindString && isJSONText(a.str) && r.names.below(a.Key)
}

// RuleOf returns the rule that covers a field, "" when none does.
func (t *Topic) RuleOf(field string) PrivacyRule {
	p, _ := namesUnder(t.rules()).rule(field)
	return p.Rule
}

// Ruled returns what the topic's rules make of a text in a field, as it is stored,
// and the rule that did: the text itself and "" when none covers the field, and an
// empty text when nothing of it may be stored. It is ErrPrivacyKey when the rule
// hashes and there is no key.
func (t *Topic) Ruled(field, text string, key []byte) (string, PrivacyRule, error) {
	p, ok := namesUnder(t.rules()).rule(field)
	if !ok {
		return text, "", nil
	}
	if p.Rule == PrivacyHash && len(key) == 0 {
		return "", p.Rule, fmt.Errorf("%w: topic %q hashes %s, and there is no key: set pii_key (ALMANAC_PII_KEY, ALMANAC_PII_KEY_FILE) to what its producers have", ErrPrivacyKey, t.Name, p.Field)
	}
	text, _ = (&Privacy{key: key}).text(p, text)
	return text, p.Rule, nil
}

func (a *Attr) clone() Attr {
	return Attr{Key: strings.Clone(a.Key), kind: a.kind, num: a.num, str: strings.Clone(a.str)}
}

// column is the text of a column of text.
func (e *Event) column(name string) *string {
	switch name {
	case ColLevel:
		return &e.Level
	case ColType:
		return &e.Type
	case ColUserID:
		return &e.UserID
	case ColMessage:
		return &e.Message
	case ColService:
		return &e.Service
	case ColTraceID:
		return &e.TraceID
	}
	return &e.SpanID
}

// attr is an attribute under a rule; false: it is left out.
func (r *Privacy) attr(p Private, a Attr) (Attr, bool) {
	if p.Rule == privacyApplied {
		return a, true
	}
	if p.Rule == PrivacyCoarseLocation && (a.kind == KindFloat64 || a.kind == KindInt64) {
		f, _ := a.AsFloat64()
		f, ok := coarse(f, p.Grid)
		return Float64(a.Key, f), ok
	}
	text, ok := r.text(p, a.Text())
	return String(a.Key, text), ok
}

// text is a text under a rule; false: nothing of it may stay.
func (r *Privacy) text(p Private, v string) (string, bool) {
	switch p.Rule {
	case privacyApplied:
		return v, true
	case PrivacyTruncateIP:
		return truncateIP(v)
	case PrivacyHash:
		if len(r.key) == 0 {
			return "", false
		}
		if v == "" {
			return "", true
		}
		h := hmac.New(sha256.New, r.key)
		_, _ = h.Write([]byte(v)) // it never fails
		return hex.EncodeToString(h.Sum(nil)[:HashDigits/2]), true
	case PrivacyCoarseLocation:
		return coarseText(v, p.Grid)
	}
	return "", false
}

// sixToFour addresses have an IPv4 address in bits 16 to 48 (RFC 3056).
var sixToFour = netip.MustParsePrefix("2002::/16")

// truncateIP is the network an address is in, written as its first address.
func truncateIP(v string) (string, bool) {
	v = strings.TrimSpace(v)
	addr, err := netip.ParseAddr(strings.Trim(v, "[]"))
	if err != nil {
		port, err := netip.ParseAddrPort(v)
		if err != nil {
			return "", false
		}
		addr = port.Addr()
	}
	addr = addr.Unmap().WithZone("")
	bits := networkBits6
	switch {
	case addr.Is4():
		bits = networkBits4
	case sixToFour.Contains(addr):
		bits = sixToFour.Bits() + networkBits4
	}
	network, err := addr.Prefix(bits)
	return network.Addr().String(), err == nil
}

// coarseText rounds one number, or two with a comma between.
func coarseText(v string, grid float64) (string, bool) {
	parts := strings.Split(v, ",")
	if len(parts) > 2 {
		return "", false
	}
	for i, part := range parts {
		f, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return "", false
		}
		f, ok := coarse(f, grid)
		if !ok {
			return "", false
		}
		parts[i] = strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strings.Join(parts, ","), true
}

// coarse is the multiple of grid nearest to a coordinate.
func coarse(f, grid float64) (float64, bool) {
	if math.IsNaN(f) || math.Abs(f) > 360 {
		return 0, false
	}
	f = math.Round(f/grid) * grid
	// Twelve digits are what a binary fraction of a degree has to spare: 0.1, not
	// 0.1000000000000000055.
	f = math.Round(f*1e12) / 1e12
	return f + 0, true // no negative zero
}
