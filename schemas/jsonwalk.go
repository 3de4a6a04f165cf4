package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonLeaf is one value of the flattened object.
type jsonLeaf struct {
	raw   []byte // the name as written, escapes and all
	text  string // the name
	value jsonValue
	top   bool // a key of the object itself, not of a nested one
}

// jsonWalk cuts valid JSON into leaves. json.Valid ran before, so there is no
// error to handle here.
type jsonWalk struct {
	b      []byte
	i      int
	leaves []jsonLeaf
	whole  *Topic // whose fields of type json keep their objects
}

func (w *jsonWalk) space() {
	for w.i < len(w.b) && (w.b[w.i] == ' ' || w.b[w.i] == '\t' || w.b[w.i] == '\n' || w.b[w.i] == '\r') {
		w.i++
	}
}

// object walks the object at w.i, whose members' names begin with prefix.
func (w *jsonWalk) object(prefix string, depth int) {
	for w.i++; ; w.i++ { // over '{' at first, over ',' afterwards
		if w.space(); w.b[w.i] == '}' {
			break
		}
		start := w.i + 1
		end := w.skip() - 1
		key := string(w.b[start:end])
		w.space()
		w.i++ // the colon
		w.space()
		w.member(prefix, key, depth)
		if w.space(); w.b[w.i] == '}' {
			break
		}
	}
	w.i++
}

// maxPrefixBytes bounds the name that each member of an object repeats. No attribute
// has a name half as long, and an object of 400 KiB could otherwise become one
// event of 800 MB.
const maxPrefixBytes = 2 * MaxAttrKeyBytes

func (w *jsonWalk) member(prefix, key string, depth int) {
	start := w.i
	message := depth == 1 && jsonWords[key] == fieldMessage
	short := len(prefix)+len(key) <= maxPrefixBytes
	if w.b[start] == '{' && depth < MaxJSONFlatten && short && !message && !w.emptyObject() && !w.whole.keeps(prefix+key) {
		if depth == 1 && key == ColAttributes {
			w.object("", depth+1)
		} else {
			w.object(prefix+key+".", depth+1)
		}
		return
	}
	end := w.skip()
	if w.b[start] == 'n' {
		return
	}
	w.leaves = append(w.leaves, jsonLeaf{raw: []byte(prefix + key), value: w.b[start:end], top: depth == 1})
}

func (w *jsonWalk) emptyObject() bool {
	at := w.i
	defer func() { w.i = at }()
	w.i++
	w.space()
	return w.b[w.i] == '}'
}

// skip passes the value at w.i and returns its end. It does not recurse, so
// depth costs nothing.
func (w *jsonWalk) skip() int {
	for depth := 0; w.i < len(w.b); {
		switch c := w.b[w.i]; c {
		case '"':
			for w.i++; w.b[w.i] != '"'; w.i++ {
				if w.b[w.i] == '\\' {
					w.i++
				}
			}
			w.i++
		case '{', '[':
			depth++
			w.i++
		case '}', ']':
			depth--
			w.i++
		case ' ', '\t', '\n', '\r', ',', ':':
			w.i++
			continue
		default: // number, true, false
			for w.i < len(w.b) && !bytes.ContainsRune([]byte(" \t\n\r,:]}"), rune(w.b[w.i])) {
				w.i++
			}
		}
		if depth == 0 {
			break
		}
	}
	return w.i
}

// jsonValue is one JSON value as written.
type jsonValue []byte

// text is a string's text, or the JSON text of anything else.
func (v jsonValue) text() string {
	if v[0] == '"' {
		return unquoteJSON(v[1 : len(v)-1])
	}
	return string(v.compact(nil))
}

// compact appends the value without the space between its tokens.
func (v jsonValue) compact(dst []byte) []byte {
	if v[0] != '{' && v[0] != '[' {
		return append(dst, v...)
	}
	buf := bytes.NewBuffer(dst)
	if err := json.Compact(buf, v); err != nil {
		return append(dst, v...) // cannot be: the value was checked
	}
	return buf.Bytes()
}

// attr is the value as an attribute, typed where that prints what was written.
func (v jsonValue) attr(key string) Attr {
	switch v[0] {
	case '"', '{', '[':
		return String(key, v.text())
	case 't', 'f':
		return Bool(key, v[0] == 't')
	}
	s := string(v)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		return Int64(key, n)
	}
	if a := Float64(key, 0); len(s) <= maxFloatDigits {
		f, err := strconv.ParseFloat(s, 64)
		if a = Float64(key, f); err == nil && (a.Text() == s || onlyZerosAfterPoint(s) && math.Abs(f) < 1<<53) {
			return a
		}
	}
	return String(key, s)
}

// maxFloatDigits is the longest text a float64 prints: sign, 17 digits, point,
// and an exponent of five characters.
const maxFloatDigits = 24

func onlyZerosAfterPoint(s string) bool {
	whole, frac, ok := strings.Cut(s, ".")
	return ok && whole != "-0" && strings.Trim(frac, "0") == ""
}

// unquoteJSON is the text between the quotes of a valid JSON string.
func unquoteJSON(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s)
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(s[i+1:])
			i += 4
			if r >= 0xd800 && r < 0xdc00 && i+6 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' {
				if low := hex4(s[i+3:]); low >= 0xdc00 && low < 0xe000 {
					r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
					i += 6
				}
			}
			if r >= 0xd800 && r < 0xe000 { // lone: what UTF-8 would give it
				out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
			} else {
				out = utf8.AppendRune(out, r)
			}
		default: // quote, backslash, slash
			out = append(out, s[i])
		}
	}
	return string(out)
}

func hex4(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[:4]), 16, 32)
	return rune(n)
}

// quoteJSON is the JSON string of s, whose bytes it keeps but for what JSON must
// escape.
func quoteJSON(s string) []byte {
	out := append(make([]byte, 0, len(s)+2), '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
