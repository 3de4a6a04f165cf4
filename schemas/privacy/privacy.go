package privacy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"github.com/almanac-events/almanac/schemas"
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

// CheckKey reports what is wrong with a key; none is fine.
func CheckKey(key []byte) error {
	if n := len(key); n > 0 && n < schemas.MinPrivacyKeyBytes {
		return fmt.Errorf("%w: %d bytes, it must have %d or more, such as `openssl rand -hex 32` makes", schemas.ErrPrivacyKey, n, schemas.MinPrivacyKeyBytes)
	}
	return nil
}

// Rules applies a topic's rules. It may be used by many goroutines at once.
type Rules struct {
	columns []schemas.Private
	names   schemas.RuleNames
	opened  []string // columns in whose JSON text a rule lies
	key     []byte
}

// New returns the rules of a topic with the key of its hashes; nil when
// there are none. Without a key, what should be hashed is dropped.
func New(t *schemas.Topic, key []byte) *Rules {
	if len(t.PII) == 0 {
		return nil
	}
	r := &Rules{names: schemas.NamesUnder(t.EitherNameRules()), key: slices.Clone(key)}
	for _, p := range t.PII {
		if name, attribute := schemas.RuleName(p.Field); !attribute && slices.Contains(schemas.PrivateColumns, name) {
			r.columns = append(r.columns, schemas.WithGrid(p, name))
		}
	}
	for _, c := range []string{schemas.ColLevel, schemas.ColService, schemas.ColType, schemas.ColUserID, schemas.ColTraceID, schemas.ColSpanID, schemas.ColMessage} {
		if r.names.Below(c) {
			r.opened = append(r.opened, c)
		}
	}
	return r
}

// Apply changes the event by the rules. The attributes it was given stay as they
// are: the event gets others when a rule meets one.
func (r *Rules) Apply(e *schemas.Event) {
	for _, p := range r.columns {
		if v := column(e, p.Field); *v != "" {
			*v, _ = r.text(p, p.Field, strings.Clone(*v))
		}
	}
	for _, name := range r.opened {
		if v := column(e, name); isJSONText(*v) {
			*v = r.cleanText(name, strings.Clone(*v))
		}
	}
	if !slices.ContainsFunc(e.Attrs, func(a schemas.Attr) bool { return r.meets(&a) }) {
		return
	}
	kept := make([]schemas.Attr, 0, len(e.Attrs))
	for i := range e.Attrs {
		// Of texts of their own, or the compiler would have every event's attributes
		// allocated, rules or not.
		own := e.Attrs[i].Clone()
		p, ruled := r.names.Rule(own.Key)
		switch {
		case !ruled && own.Kind() == schemas.KindString:
			kept = append(kept, schemas.String(own.Key, r.cleanText(own.Key, own.Text())))
		case !ruled:
			kept = append(kept, own)
		default:
			a, ok := r.attr(p, own.Key, own)
			if ok {
				kept = append(kept, a)
			} else if !slices.ContainsFunc(kept, func(k schemas.Attr) bool { return k.Key == p.Field }) {
				kept = append(kept, schemas.String(p.Field, ""))
			}
		}
	}
	e.Attrs = kept
}

// meets reports whether a rule may change the attribute.
func (r *Rules) meets(a *schemas.Attr) bool {
	_, ruled := r.names.Rule(a.Key)
	return ruled || a.Kind() == schemas.KindString && isJSONText(a.Text()) && r.names.Below(a.Key)
}

// Ruled returns what the topic's rules make of a text in a field, as it is stored,
// and the rule that did: the text itself and "" when none covers the field, and an
// empty text when nothing of it may be stored. It is ErrPrivacyKey when the rule
// hashes and there is no key.
func Ruled(t *schemas.Topic, field, text string, key []byte) (string, schemas.PrivacyRule, error) {
	p, ok := schemas.NamesUnder(t.EitherNameRules()).Rule(field)
	if !ok {
		return text, "", nil
	}
	if p.Rule == schemas.PrivacyHash && len(key) == 0 {
		return "", p.Rule, fmt.Errorf("%w: topic %q hashes %s, and there is no key: set pii_key (ALMANAC_PII_KEY, ALMANAC_PII_KEY_FILE) to what its producers have", schemas.ErrPrivacyKey, t.Name, p.Field)
	}
	text, _ = (&Rules{key: key}).text(p, field, text)
	return text, p.Rule, nil
}

// column is the text of a column of text.
func column(e *schemas.Event, name string) *string {
	switch name {
	case schemas.ColLevel:
		return &e.Level
	case schemas.ColType:
		return &e.Type
	case schemas.ColUserID:
		return &e.UserID
	case schemas.ColMessage:
		return &e.Message
	case schemas.ColService:
		return &e.Service
	case schemas.ColTraceID:
		return &e.TraceID
	case schemas.ColSpanID:
		return &e.SpanID
	}
	panic("privacy: a private column without a place in an event: " + name)
}

// attr is an attribute under a rule, of the name that it has or had; false: it is left out.
func (r *Rules) attr(p schemas.Private, name string, a schemas.Attr) (schemas.Attr, bool) {
	if p.Rule == schemas.PrivacyApplied {
		return a, true
	}
	if p.Rule == schemas.PrivacyCoarseLocation && (a.Kind() == schemas.KindFloat64 || a.Kind() == schemas.KindInt64) {
		f, _ := a.AsFloat64()
		f, ok := coarse(f, p.Grid)
		return schemas.Float64(a.Key, f), ok
	}
	text, ok := r.text(p, name, a.Text())
	return schemas.String(a.Key, text), ok
}

// text is a text of that name under a rule; false: nothing of it may stay.
func (r *Rules) text(p schemas.Private, name, v string) (string, bool) {
	switch p.Rule {
	case schemas.PrivacyApplied:
		return v, true
	case schemas.PrivacyTruncateIP:
		return truncateIP(v)
	case schemas.PrivacyHash:
		if len(r.key) == 0 {
			return "", false
		}
		if v == "" {
			return "", true
		}
		h := hmac.New(sha256.New, r.key)
		_, _ = h.Write([]byte(v)) // it never fails
		return hex.EncodeToString(h.Sum(nil)[:schemas.HashDigits/2]), true
	case schemas.PrivacyCoarseLocation:
		if text, ok := coarseText(v, p.Grid); ok || !isPlace(p.Field, name, v) {
			return text, ok
		}
		return v, true
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
