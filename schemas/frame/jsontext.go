package frame

import (
	"bytes"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// plainJSON are the bytes that stand for themselves in a JSON string.
var plainJSON = func() (plain [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

// appendJSONText writes a text as a JSON string, as ClickHouse does: the line
// separators of JavaScript escaped, and each run of invalid UTF-8 one U+FFFD.
func appendJSONText(dst, s []byte) []byte {
	dst = append(dst, '"')
	for len(s) > 0 {
		n := 0
		for n < len(s) && plainJSON[s[n]] {
			n++
		}
		dst = append(dst, s[:n]...)
		if s = s[n:]; len(s) == 0 {
			break
		}
		size := 1
		switch c := s[0]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = appendJSONControl(dst, c)
		default:
			var r rune
			switch r, size = utf8.DecodeRune(s); {
			case r == utf8.RuneError && size == 1:
				if !bytes.HasSuffix(dst, replacement) {
					dst = append(dst, replacement...)
				}
			case r == '\u2028':
				dst = append(dst, `\u2028`...)
			case r == '\u2029':
				dst = append(dst, `\u2029`...)
			default:
				dst = append(dst, s[:size]...)
			}
		}
		s = s[size:]
	}
	return append(dst, '"')
}

var replacement = []byte("\uFFFD")

func appendJSONControl(dst []byte, c byte) []byte {
	switch c {
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], "0123456789ABCDEF"[c&15]) // as ClickHouse spells it
}
