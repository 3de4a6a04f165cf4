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

// What truncate_ip leaves of an address.
const (
	networkBits4 = 24
	networkBits6 = 48
)

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

// Apply changes the event by the rules. The attributes it was given stay as they
// are: the event gets others when a rule meets one.
func (r *Privacy) Apply(e *Event) {
	for _, p := range r.columns {
		if v := column(e, p.Field); *v != "" {
			*v, _ = r.text(p, strings.Clone(*v))
		}
	}
	for _, name := range r.opened {
		if v := column(e, name); isJSONText(*v) {
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
		case !ruled && own.Kind() == KindString:
			kept = append(kept, String(own.Key, r.cleanText(own.Key, own.Text())))
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
	return ruled || a.Kind() == KindString && isJSONText(a.Text()) && r.names.below(a.Key)
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

// column is the text of a column of text.
func column(e *Event, name string) *string {
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
	if p.Rule == PrivacyCoarseLocation && (a.Kind() == KindFloat64 || a.Kind() == KindInt64) {
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
