package schemas

import "strings"

// RuleNames finds the rule that covers a name.
//
// A rule covers its own name and every name that goes on after it with one of
// NameEnds: email covers email#2 (a key that came twice), email.home (of an
// object) and email[0]. Case of ASCII letters counts for nothing, and neither do
// leading dots, spaces, "#2." of an empty key that came twice, "attributes." and
// "almanac_rest." (see PlainName), which empty keys, sloppy CSV headers and wrapped objects bring. Of several rules the longest
// name wins.
//
// A rule also reaches into text that is JSON: users.email means the email of each
// object in the array users. See privacy.Rules.
type RuleNames struct {
	rules map[string]Private
	// inside are the names below which a rule lies: users of users.email.
	inside map[string]bool
}

// NameEnds are the bytes after which a name is derived from what stands before.
// Letters, digits, - and _ are not among them: email_hash is another name.
const NameEnds = ".#[:/ \t\x00"

// nameLead is what PlainName takes off, beside names of wrappers.
const nameLead = ". \t\x00"

// NamesUnder returns the names of rules. Fields in them are plain names.
func NamesUnder(rules []Private) RuleNames {
	n := RuleNames{rules: map[string]Private{}, inside: map[string]bool{}}
	for _, p := range rules {
		name, _ := RuleName(p.Field)
		for _, alias := range aliases(name) {
			n.rules[alias] = WithGrid(p, name)
			for i := range alias {
				if i > 0 && isNameEnd(alias[i]) {
					n.inside[alias[:i]] = true
				}
			}
		}
	}
	return n
}

// aliases are a plain name and the other ones that JSON may give it by.
func aliases(name string) []string {
	if rest, ok := strings.CutPrefix(name, ColMessage); ok && (rest == "" || isNameEnd(rest[0])) {
		return []string{name, wordMsg + rest}
	}
	return []string{name}
}

// RuleName returns the plain name of a rule's field, and whether it means the
// attribute alone.
func RuleName(field string) (name string, attribute bool) {
	_, attribute = strings.CutPrefix(field, ColAttributes+".")
	name = lowerASCII(PlainName(field))
	if rest, ok := strings.CutPrefix(name, wordMsg); ok && (rest == "" || isNameEnd(rest[0])) {
		name = ColMessage + rest
	}
	return name, attribute
}

// PlainName cuts what may stand before a name without making it another one.
func PlainName(name string) string {
	for {
		name = strings.TrimLeft(name, nameLead)
		n := repeatedEmpty(name)
		if n > 0 && n == len(name) {
			return ""
		}
		if n == 0 {
			n = wrapper(name)
		}
		if n == 0 || n == len(name) || name[n] != '.' {
			return name
		}
		name = name[n+1:]
	}
}

// repeatedEmpty returns how many bytes at the beginning of a name are derived from an
// empty one, such as #2 of an empty key that came twice. Its members count as the
// event's own, as an empty key's do.
func repeatedEmpty(name string) int {
	if name == "" || name[0] != '#' {
		return 0
	}
	if n := strings.IndexByte(name, '.'); n > 0 {
		return n
	}
	return len(name)
}

// wrapper returns how many bytes at the beginning of a name are that of an object
// whose members count as the event's own: attributes, and AttrRest with what stands
// in for it when an event has an attribute of that name.
func wrapper(name string) int {
	for _, w := range []string{ColAttributes, AttrRest} {
		if n := len(w); len(name) >= n && strings.EqualFold(name[:n], w) {
			for n < len(name) && name[n] == '#' {
				n++
			}
			return n
		}
	}
	return 0
}

func isNameEnd(c byte) bool { return strings.IndexByte(NameEnds, c) >= 0 }

// lowerASCII folds the case of ASCII letters, as ClickHouse's lower does.
func lowerASCII(s string) string {
	var buf [MaxAttrKeyBytes + 1]byte
	return string(appendLower(buf[:0], s))
}

func appendLower(dst []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// Rule returns the rule that covers a name. It allocates nothing.
func (n RuleNames) Rule(name string) (Private, bool) {
	var buf [MaxAttrKeyBytes + 1]byte
	name = PlainName(name)
	b := appendLower(buf[:0], name[:min(len(name), len(buf))])
	for i := len(b); i > 0; i-- {
		if i == len(b) && i == len(name) || i < len(b) && isNameEnd(b[i]) {
			if p, ok := n.rules[string(b[:i])]; ok {
				return p, true
			}
		}
	}
	return Private{}, false
}

// Below reports whether a rule may lie inside a JSON text of that name.
func (n RuleNames) Below(name string) bool {
	name = OnceName(name)
	if name == "" {
		return len(n.rules) > 0
	}
	if len(name) > MaxAttrKeyBytes {
		return false
	}
	var buf [MaxAttrKeyBytes + 1]byte
	return n.inside[string(appendLower(buf[:0], name))]
}

// OnceName is the plain name without the number of one that came twice, and empty
// for that of a wrapper.
func OnceName(name string) string {
	name = PlainName(name)
	if i := strings.IndexByte(name, '#'); i > 0 {
		name = name[:i]
	}
	if wrapper(name) == len(name) {
		return ""
	}
	return name
}

// wordMsg is a key that means message.
const wordMsg = "msg"

// AttrRest holds, as one JSON object of flattened names, what a JSON event has
// beyond the limits: attributes after the (MaxAttrs-1)th, and those whose name
// is empty or longer than MaxAttrKeyBytes. Promoted fields and fields with rules
// are not among the former (rawjson.Keys.Topic).
const AttrRest = "almanac_rest"
