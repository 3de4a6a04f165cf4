package logql

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/go-logfmt/logfmt"
)

func parser(t *pipeTerm) (Stage, error) {
	name := t.Parser.Name
	if name != "json" && name != "logfmt" {
		return nil, unsupported(t.Pos, "the parser "+name)
	}
	if t.Parser.Text != nil {
		return nil, refuse(ErrSyntax, t.Pos, "%s takes names with paths: %[1]s label=\"path\"", name)
	}
	paths := make([]path, 0, len(t.Parser.Paths))
	for _, p := range t.Parser.Paths {
		one, err := extraction(t.Pos, p)
		if err != nil {
			return nil, err
		}
		paths = append(paths, one)
	}
	if name == "json" {
		if len(t.Parser.Flags) > 0 {
			return nil, refuse(ErrSyntax, t.Pos, "json takes no flag")
		}
		return &jsonParser{paths}, nil
	}
	out := &logfmtParser{paths: paths}
	for _, f := range t.Parser.Flags {
		switch f {
		case "--strict":
			out.strict = true
		case "--keep-empty":
			out.empty = true
		default:
			return nil, refuse(ErrSyntax, t.Pos, "logfmt has no flag %s; there are --strict and --keep-empty", f)
		}
	}
	return out, nil
}

// path is a label that a parser is to make, and where its value stands.
type path struct {
	label string
	keys  []any // names and indexes
}

// extraction reads where the value of a label stands: names with dots between, and in brackets an
// index or a name in quotes, as in a.b[0]["c d"].
func extraction(at lexer.Position, t *paramTerm) (path, error) {
	p := path{label: t.Name, keys: []any{t.Name}}
	if t.Text == nil {
		return p, nil
	}
	text, err := unquote(*t.Text)
	if err != nil {
		return p, refuse(ErrSyntax, at, "%s is not a text: an escape in it is not known", *t.Text)
	}
	p.keys = nil
	for rest := text; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "["):
			quoted, _ := strconv.QuotedPrefix(rest[1:]) // may have a bracket; empty before an index
			inside, after, ok := strings.Cut(rest[1+len(quoted):], "]")
			if inside = quoted + inside; !ok {
				return p, refuse(ErrSyntax, at, "%s is not a path: a bracket is not closed", *t.Text)
			}
			if key, err := strconv.Unquote(inside); err == nil {
				p.keys = append(p.keys, key)
			} else if n, err := strconv.Atoi(inside); err == nil && n >= 0 {
				p.keys = append(p.keys, n)
			} else {
				return p, refuse(ErrSyntax, at, "%s is not a path: [%s] is neither an index nor a name in quotes", *t.Text, inside)
			}
			rest = after
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return p, refuse(ErrSyntax, at, "%s is not a path", *t.Text)
			}
			p.keys, rest = append(p.keys, rest[:end]), rest[end:]
		}
	}
	if len(p.keys) == 0 {
		return p, refuse(ErrSyntax, at, "the path of %s is empty", t.Name)
	}
	return p, nil
}

// jsonParser makes labels of a line that is a JSON object. What Almanac took as JSON is attributes already, and its line is the
// message: a line that does not begin as an object is left alone, and without an error.
type jsonParser struct{ paths []path }

func (s *jsonParser) apply(e *Entry) bool {
	if !strings.HasPrefix(strings.TrimLeft(e.Line, " \t\r\n"), "{") {
		return true
	}
	d := json.NewDecoder(strings.NewReader(e.Line))
	d.UseNumber()
	var all map[string]any
	if err := d.Decode(&all); err != nil || d.More() {
		e.fail("JSONParserErr", "the line is not a JSON object")
		return true
	}
	if len(s.paths) == 0 {
		flatten(e, "", all)
		return true
	}
	for _, p := range s.paths {
		if text, ok := jsonText(follow(all, p.keys)); ok {
			e.extract(p.label, text)
		}
	}
	return true
}

// flatten makes a label of each value, its name those of the objects that it is in, joined by _. Lists are left out, as Loki does.
func flatten(e *Entry, prefix string, all map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		v := all[key]
		name := prefix + LabelName(key)
		if inner, ok := v.(map[string]any); ok {
			flatten(e, name+"_", inner)
			continue
		}
		if _, list := v.([]any); list {
			continue
		}
		if text, ok := jsonText(v); ok {
			e.extract(name, text)
		}
	}
}

func follow(v any, keys []any) any {
	for _, k := range keys {
		switch at := v.(type) {
		case map[string]any:
			name, _ := k.(string)
			v = at[name]
		case []any:
			n, ok := k.(int)
			if !ok || n >= len(at) {
				return nil
			}
			v = at[n]
		default:
			return nil
		}
	}
	return v
}

// jsonText is a value as a label has it; null is none.
func jsonText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", false
	}
	return strings.TrimSuffix(b.String(), "\n"), true
}

// logfmtParser makes labels of the pairs key=value of a line.
type logfmtParser struct {
	strict, empty bool
	paths         []path
}

func (s *logfmtParser) apply(e *Entry) bool {
	for _, line := range strings.Split(e.Line, "\n") {
		for left := line; left != ""; {
			bad := s.pairs(e, left)
			if bad == nil {
				break
			}
			if s.strict {
				e.fail("LogfmtParserErr", bad.Error())
				return true
			}
			// What cannot be read is passed over, up to the next space.
			at := min(max(bad.Pos-1, 0), len(left))
			space := strings.IndexByte(left[at:], ' ')
			if space < 0 {
				break
			}
			left = left[at+space+1:]
		}
	}
	return true
}

// pairs takes the pairs of a line, up to one that is not right.
func (s *logfmtParser) pairs(e *Entry, line string) *logfmt.SyntaxError {
	d := logfmt.NewDecoderSize(strings.NewReader(line), len(line)+1)
	for d.ScanRecord() {
		for d.ScanKeyval() {
			s.pair(e, string(d.Key()), string(d.Value()))
		}
	}
	var bad *logfmt.SyntaxError
	errors.As(d.Err(), &bad) // a line that is in memory gives no other error
	return bad
}

func (s *logfmtParser) pair(e *Entry, key, value string) {
	if value == "" && !s.empty {
		return
	}
	if len(s.paths) == 0 {
		e.extract(LabelName(key), value)
		return
	}
	for _, p := range s.paths {
		if len(p.keys) == 1 && p.keys[0] == key {
			e.extract(p.label, value)
		}
	}
}
