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
	// PrivacyDrop: the field is left empty, an attribute is left out.
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

// Private is the privacy rule of one field.
type Private struct {
	// Field is a column (user_id, message, service, trace_id, span_id) or else an
	// attribute, promoted or not; "attributes.x" is the attribute x in any case.
	Field string      `json:"field" yaml:"field"`
	Rule  PrivacyRule `json:"rule" yaml:"rule"`
	// Grid of coarse_location in degrees; 0: DefaultGrid.
	Grid float64 `json:"grid,omitempty" yaml:"grid,omitempty"`
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

// validatePrivacy reports what is wrong with the rules.
func (t *Topic) validatePrivacy() error {
	if len(t.PII) > MaxFields {
		return fmt.Errorf("pii names %d fields, the limit is %d", len(t.PII), MaxFields)
	}
	seen := map[string]bool{}
	for _, p := range t.PII {
		key, attribute := strings.CutPrefix(p.Field, ColAttributes+".")
		switch {
		case key == "" || len(key) > MaxAttrKeyBytes:
			return fmt.Errorf("pii field %q must have 1 to %d bytes", p.Field, MaxAttrKeyBytes)
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
		case p.Rule == PrivacyDrop && slices.Contains(t.LaneBy, key):
			return fmt.Errorf("pii drops field %q, by which the topic's lanes are cut (lane_by); hash it instead", p.Field)
		}
		seen[key] = true
		for _, f := range t.Fields {
			text := f.Type == TypeString || f.Type == TypeLowCardinality
			if f.Name == key && !text && (p.Rule == PrivacyHash || p.Rule == PrivacyTruncateIP) {
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
	attrs   map[string]Private
	key     []byte
}

// NewPrivacy is the rules of a topic with the key of its hashes; nil when there
// are none. Without a key, what should be hashed is dropped.
func NewPrivacy(t *Topic, key []byte) *Privacy {
	if len(t.PII) == 0 {
		return nil
	}
	r := &Privacy{attrs: map[string]Private{}, key: slices.Clone(key)}
	for _, p := range t.PII {
		name, attribute := strings.CutPrefix(p.Field, ColAttributes+".")
		if p.Grid == 0 {
			p.Grid = DefaultGrid
		}
		p.Field = name
		if !attribute && slices.Contains(privateColumns, name) {
			r.columns = append(r.columns, p)
		} else {
			r.attrs[name] = p
		}
	}
	return r
}

// Apply changes the event by the rules. The attributes it was given stay as they
// are: the event gets others when a rule meets one.
func (r *Privacy) Apply(e *Event) {
	for _, p := range r.columns {
		if v := e.column(p.Field); *v != "" {
			*v, _ = r.text(p, strings.Clone(*v))
		}
	}
	if !slices.ContainsFunc(e.Attrs, func(a Attr) bool { _, ok := r.attrs[a.Key]; return ok }) {
		return
	}
	kept := make([]Attr, 0, len(e.Attrs))
	for i := range e.Attrs {
		// Of texts of their own, or the compiler would have every event's attributes
		// allocated, rules or not.
		own, ok := e.Attrs[i].clone(), true
		if p, ruled := r.attrs[own.Key]; ruled {
			own, ok = r.attr(p, own)
		}
		if ok {
			kept = append(kept, own)
		}
	}
	e.Attrs = kept
}

func (a *Attr) clone() Attr {
	return Attr{Key: strings.Clone(a.Key), kind: a.kind, num: a.num, str: strings.Clone(a.str)}
}

// column is the text of one of privateColumns.
func (e *Event) column(name string) *string {
	switch name {
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
	if p.Rule == PrivacyCoarseLocation && (a.kind == KindFloat64 || a.kind == KindInt64) {
		f, _ := a.asFloat64()
		f, ok := coarse(f, p.Grid)
		return Float64(a.Key, f), ok
	}
	text, ok := r.text(p, a.Text())
	return String(a.Key, text), ok
}

// text is a text under a rule; false: nothing of it may stay.
func (r *Privacy) text(p Private, v string) (string, bool) {
	switch p.Rule {
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
	if addr.Is4() {
		bits = networkBits4
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
