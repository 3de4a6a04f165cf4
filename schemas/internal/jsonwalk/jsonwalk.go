package jsonwalk

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Cursor is a place in valid JSON. Valid, or json.Valid, ran before, so no error is left to
// handle here.
type Cursor struct {
	B []byte
	I int
}

// Space passes the space at w.I.
func (w *Cursor) Space() {
	for w.I < len(w.B) && (w.B[w.I] == ' ' || w.B[w.I] == '\t' || w.B[w.I] == '\n' || w.B[w.I] == '\r') {
		w.I++
	}
}

// EmptyObject reports whether the object at w.I has no members.
func (w *Cursor) EmptyObject() bool {
	at := w.I
	defer func() { w.I = at }()
	w.I++
	w.Space()
	return w.B[w.I] == '}'
}

// Skip passes the value at w.I and returns its end. It does not recurse, so
// depth costs nothing.
func (w *Cursor) Skip() int {
	for depth := 0; w.I < len(w.B); {
		switch c := w.B[w.I]; c {
		case '"':
			for w.I++; w.B[w.I] != '"'; w.I++ {
				if w.B[w.I] == '\\' {
					w.I++
				}
			}
			w.I++
		case '{', '[':
			depth++
			w.I++
		case '}', ']':
			depth--
			w.I++
		case ' ', '\t', '\n', '\r', ',', ':':
			w.I++
			continue
		default: // number, true, false
			for w.I < len(w.B) && !bytes.ContainsRune([]byte(" \t\n\r,:]}"), rune(w.B[w.I])) {
				w.I++
			}
		}
		if depth == 0 {
			break
		}
	}
	return w.I
}

// Raw is one valid JSON value as written.
type Raw string

// Text returns a string's text, or the JSON text of anything else.
func (v Raw) Text() string {
	switch v[0] {
	case '"':
		return Unquote(string(v[1 : len(v)-1]))
	case '{', '[':
		return string(v.Compact(nil))
	}
	return string(v)
}

// Compact appends the value without the space between its tokens.
func (v Raw) Compact(dst []byte) []byte {
	s := string(v)
	for i := 0; i < len(s); {
		switch s[i] {
		case ' ', '\t', '\n', '\r':
			i++
		case '"':
			end := PassString(s, i)
			dst = append(dst, s[i:end]...)
			i = end
		default:
			dst = append(dst, s[i])
			i++
		}
	}
	return dst
}

// Unquote is the text between the quotes of a valid JSON string.
func Unquote(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
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

func hex4(s string) rune {
	n, _ := strconv.ParseUint(s[:4], 16, 32)
	return rune(n)
}

// Quote is the JSON string of s, whose bytes it keeps but for what JSON must
// escape.
func Quote(s string) string {
	if end := PassString(`"`+s+`"`, 0); end == len(s)+2 && strings.IndexByte(s, '\\') < 0 {
		return `"` + s + `"`
	}
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
	return string(append(out, '"'))
}
