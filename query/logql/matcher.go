package logql

import (
	"regexp"

	"github.com/alecthomas/participle/v2/lexer"
)

// Op is how a matcher compares.
type Op string

// The operators of matchers.
const (
	Equal    Op = "="
	NotEqual Op = "!="
	Match    Op = "=~"
	NotMatch Op = "!~"
)

// Matcher compares a label with a text. A label that is not there is the empty text.
type Matcher struct {
	Name  string
	Op    Op
	Value string
	re    *regexp.Regexp // of Match and NotMatch
}

// Matches reports whether a value fulfils the matcher.
func (m *Matcher) Matches(value string) bool {
	switch m.Op {
	case Equal:
		return value == m.Value
	case NotEqual:
		return value != m.Value
	case Match:
		return m.re.MatchString(value)
	}
	return !m.re.MatchString(value)
}

func matcher(at lexer.Position, name, op, text string) (m Matcher, err error) {
	m = Matcher{Name: name, Op: Op(op)}
	if m.Value, err = unquote(text); err != nil {
		return m, refuse(ErrSyntax, at, "%s is not a text: an escape in it is not known", text)
	}
	if m.Op == Match || m.Op == NotMatch {
		if m.re, err = anchored(m.Value); err != nil {
			return m, refuse(ErrSyntax, at, "%s is not a regular expression: %v", text, err)
		}
	}
	return m, nil
}
