package logql

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/alecthomas/participle/v2/lexer"
)

// maxFormatted bounds what a template makes of a line, as a line is bounded.
const maxFormatted = 64 << 10

var errWithheld = errors.New("print, printf, println, html, js and urlquery are not built in templates")

var errFormatted = fmt.Errorf("it makes more than %d bytes of a line", maxFormatted)

// formatted is a template over the labels and the line of an entry.
type formatted struct{ t *template.Template }

// functions of templates, those of Loki that are told to be used most. Their results are bounded.
var functions = template.FuncMap{
	"print": withheld, "println": withheld, "printf": withheld, "html": withheld, "js": withheld, "urlquery": withheld,
	"ToLower": strings.ToLower, "ToUpper": strings.ToUpper, "lower": strings.ToLower, "upper": strings.ToUpper,
	"Trim": strings.Trim, "TrimLeft": strings.TrimLeft, "TrimRight": strings.TrimRight, "TrimPrefix": strings.TrimPrefix, "TrimSuffix": strings.TrimSuffix, "TrimSpace": strings.TrimSpace,
	"trim": strings.TrimSpace, "trimPrefix": func(p, s string) string { return strings.TrimPrefix(s, p) }, "trimSuffix": func(p, s string) string { return strings.TrimSuffix(s, p) },
	"Replace": replace, "replace": func(old, with, s string) (string, error) { return replace(s, old, with, -1) },
	"contains": func(part, s string) bool { return strings.Contains(s, part) }, "hasPrefix": func(p, s string) bool { return strings.HasPrefix(s, p) }, "hasSuffix": func(p, s string) bool { return strings.HasSuffix(s, p) },
	"default": func(def, s string) string {
		if s == "" {
			return def
		}
		return s
	},
	"trunc":  trunc,
	"substr": func(from, to int, s string) string { return substr(from, to, s) },
	"int":    func(s string) int64 { return int64(number(s)) }, "float64": number,
	"add": func(a, b any) float64 { return number(a) + number(b) }, "sub": func(a, b any) float64 { return number(a) - number(b) },
	"mul": func(a, b any) float64 { return number(a) * number(b) }, "div": func(a, b any) float64 { return number(a) / number(b) },
	"__line__":      func() string { return "" },
	"__timestamp__": func() string { return "" },
}

func replace(s, old, with string, n int) (string, error) {
	times := strings.Count(s, old)
	if n >= 0 {
		times = min(times, n)
	}
	if len(s)+times*len(with) > maxFormatted {
		return "", errFormatted
	}
	return strings.Replace(s, old, with, n), nil
}

func trunc(n int, s string) string {
	if n < 0 {
		return s[max(len(s)+n, 0):]
	}
	return s[:min(n, len(s))]
}

func substr(from, to int, s string) string {
	from = min(max(from, 0), len(s))
	if to < from || to > len(s) {
		to = len(s)
	}
	return s[from:to]
}

func number(v any) float64 {
	n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		return 0
	}
	return n
}

// withheld stands for the functions that every template has and that make much text of little: nothing bounds what they make.
func withheld(...any) (string, error) { return "", errWithheld }

// newFormatted reads a template. What could run for long is refused: loops, and templates that call each other.
func newFormatted(at lexer.Position, text string) (*formatted, error) {
	t, err := template.New("line").Option("missingkey=zero").Funcs(functions).Parse(text)
	if err != nil {
		return nil, refuse(ErrSyntax, at, "the template cannot be read: %s", strings.TrimPrefix(err.Error(), "template: line:"))
	}
	if len(t.Templates()) > 1 || t.Tree != nil && loops(t.Root) {
		return nil, unsupported(at, "range, define, template and block in a template")
	}
	return &formatted{t}, nil
}

// loops reports whether a part of a template repeats others.
func loops(n parse.Node) bool {
	any := func(lists ...*parse.ListNode) bool {
		for _, l := range lists {
			if l == nil {
				continue
			}
			for _, n := range l.Nodes {
				if loops(n) {
					return true
				}
			}
		}
		return false
	}
	switch n := n.(type) {
	case *parse.RangeNode, *parse.TemplateNode:
		return true
	case *parse.ListNode:
		return any(n)
	case *parse.IfNode:
		return any(n.List, n.ElseList)
	case *parse.WithNode:
		return any(n.List, n.ElseList)
	}
	return false
}

func (f *formatted) of(e *Entry) (string, error) {
	t, err := f.t.Clone()
	if err != nil {
		return "", err
	}
	t.Funcs(template.FuncMap{"__line__": func() string { return e.Line }, "__timestamp__": func() string { return time.Unix(0, e.Ts).UTC().Format(time.RFC3339Nano) }})
	labels := map[string]string{}
	for name, v := range e.Labels() {
		labels[name] = v
	}
	var b bounded
	if err := t.Execute(&b, labels); err != nil {
		if errors.Is(err, errFormatted) {
			return "", errFormatted
		}
		return "", err
	}
	return b.String(), nil
}

// bounded is a text that takes maxFormatted bytes.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxFormatted {
		return 0, errFormatted
	}
	return b.Builder.Write(p)
}

// lineFormatter makes a new line.
type lineFormatter struct{ *formatted }

func lineFormat(at lexer.Position, text string) (Stage, error) {
	text, err := unquote(text)
	if err != nil {
		return nil, refuse(ErrSyntax, at, "line_format takes a template in quotes")
	}
	f, err := newFormatted(at, text)
	return &lineFormatter{f}, err
}

func (s *lineFormatter) apply(e *Entry) bool {
	line, err := s.of(e)
	if err != nil {
		e.fail("TemplateFormatErr", err.Error())
		return true
	}
	e.Line = line
	return true
}

// labelFormatter renames labels, or makes new ones.
type labelFormatter struct {
	names []string
	from  []string
	made  []*formatted // nil where it renames
}

func labelFormat(terms []*setTerm) (Stage, error) {
	s := &labelFormatter{}
	for _, t := range terms {
		var f *formatted
		if t.Text != nil {
			text, err := unquote(*t.Text)
			if err != nil {
				return nil, refuse(ErrSyntax, t.Pos, "%s is not a text: an escape in it is not known", *t.Text)
			}
			if f, err = newFormatted(t.Pos, text); err != nil {
				return nil, err
			}
		}
		s.names, s.from, s.made = append(s.names, t.Name), append(s.from, t.From), append(s.made, f)
	}
	return s, nil
}

func (s *labelFormatter) apply(e *Entry) bool {
	for i, name := range s.names {
		if s.made[i] == nil {
			if v := e.Get(s.from[i]); v != "" {
				e.remove(s.from[i])
				e.set(name, v)
			}
			continue
		}
		v, err := s.made[i].of(e)
		if err != nil {
			e.fail("TemplateFormatErr", err.Error())
			continue
		}
		e.set(name, v)
	}
	return true
}

// dropper takes labels away: those that are named, or all others. A matcher says of which value.
type dropper struct {
	matchers []Matcher
	keep     bool
}

func dropping(t *pipeTerm, terms []*dropTerm, keep bool) (Stage, error) {
	s := &dropper{keep: keep}
	for _, d := range terms {
		m := Matcher{Name: d.Name, Op: Match, re: everything}
		if d.Text != nil {
			var err error
			if m, err = matcher(t.Pos, d.Name, d.Op, *d.Text); err != nil {
				return nil, err
			}
		}
		s.matchers = append(s.matchers, m)
	}
	return s, nil
}

var everything = regexp.MustCompile("")

func (s *dropper) apply(e *Entry) bool {
	for name, v := range e.Labels() {
		if s.keep && (name == ErrorLabel || name == DetailsLabel) {
			continue
		}
		named := false
		for i := range s.matchers {
			named = named || s.matchers[i].Name == name && s.matchers[i].Matches(v)
		}
		if named != s.keep {
			e.remove(name)
		}
	}
	return true
}

// Unwrap reads a label's value as a number.
type Unwrap struct {
	Label string
	conv  string
}

// apply leaves entries out that do not have the label; one that cannot be read is an error of the entry.
func (u *Unwrap) apply(e *Entry) bool {
	text := e.Get(u.Label)
	if text == "" {
		return false
	}
	if _, ok := u.Value(e); !ok {
		e.fail("SampleExtractionErr", u.Label+" is not a number")
	}
	return true
}

// Value returns the number, in seconds of a length of time and bytes of a size.
func (u *Unwrap) Value(e *Entry) (float64, bool) {
	kind := KindNumber
	switch u.conv {
	case "bytes":
		kind = KindBytes
	case "duration", "duration_seconds":
		kind = KindDuration
	}
	return read(e.Get(u.Label), kind)
}
