package filter

import (
	"regexp"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// String is the field as a filter names it.
func (f field) String() string {
	switch {
	case f.typ == typeAttr && plainKey.MatchString(f.key):
		return attrPrefix + f.key
	case f.typ == typeAttr:
		return schemas.ColAttributes + "[" + Quote(f.key) + "]"
	case keyword.MatchString(f.name):
		return "`" + f.name + "`"
	}
	return f.name
}

var (
	plainKey = regexp.MustCompile(`^[A-Za-z0-9_@$:/#-]+(\.[A-Za-z0-9_@$:/#-]+)*$`)
	keyword  = regexp.MustCompile(`(?i)^(and|or|not|in|contains|matches|exists|true|false)$`)
)

func (n logical) print(b *strings.Builder, top bool) {
	word := " AND "
	if n.or {
		word = " OR "
	}
	if !top {
		b.WriteByte('(')
	}
	for i, k := range n.kids {
		if i > 0 {
			b.WriteString(word)
		}
		k.print(b, false)
	}
	if !top {
		b.WriteByte(')')
	}
}

func (n negation) print(b *strings.Builder, _ bool) {
	b.WriteString("NOT ")
	if _, double := n.kid.(negation); double { // NOT NOT x would parse as x
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	n.kid.print(b, false)
}

func (n compare) print(b *strings.Builder, _ bool) {
	if n.op == opExists {
		b.WriteString("exists " + n.field.String())
		return
	}
	b.WriteString(n.field.String() + " " + string(n.op) + " ")
	if n.op != opIn && n.op != opNotIn {
		b.WriteString(n.values[0].src)
		return
	}
	srcs := make([]string, len(n.values))
	for i, v := range n.values {
		srcs[i] = v.src
	}
	b.WriteString("(" + strings.Join(srcs, ", ") + ")")
}
