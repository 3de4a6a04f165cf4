package jsonwalk

import "math/bits"

// MaxDepth is how deep JSON may nest: as deep as encoding/json reads.
const MaxDepth = 10_000

// Valid reports whether a text is one JSON value, as json.Valid does.
func Valid(s string) bool {
	i := Pass(s, Space(s, 0), 0)
	return i >= 0 && Space(s, i) == len(s)
}

// Space returns the first place from i on that is not white space.
func Space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// At returns the byte at i, 0 after the end. JSON does not have that byte but in mistake.
func At(s string, i int) byte {
	if i >= len(s) {
		return 0
	}
	return s[i]
}

// Pass checks the value at i and returns its end, or -1 where it is not JSON. depth is how
// many objects and arrays are open around it. It does not recurse.
func Pass(s string, i, depth int) int {
	var few [64]byte
	open := few[:0] // the closing bytes of what is open
	for {
		switch c := At(s, i); c {
		case '"':
			i = PassString(s, i)
		case '{', '[':
			closing := c + 2 // in ASCII
			if depth+len(open) == MaxDepth {
				return -1
			}
			if i = Space(s, i+1); At(s, i) == closing {
				i++
				break
			}
			open = append(open, closing)
			if c == '{' {
				_, i = PassName(s, i)
			}
			if i < 0 {
				return -1
			}
			continue
		case 't':
			i = word(s, i, "true")
		case 'f':
			i = word(s, i, "false")
		case 'n':
			i = word(s, i, "null")
		default:
			i = number(s, i)
		}
		if i < 0 {
			return -1
		}
		if i, open = ended(s, i, open); i < 0 || len(open) == 0 {
			return i
		}
	}
}

// ended goes on after a value that ended at i, to the next one or to the end of the
// outermost.
func ended(s string, i int, open []byte) (int, []byte) {
	for len(open) > 0 {
		i = Space(s, i)
		closing := open[len(open)-1]
		switch At(s, i) {
		case closing:
			open = open[:len(open)-1]
			i++
			continue
		case ',':
			if i = Space(s, i+1); closing == '}' {
				_, i = PassName(s, i)
			}
			return i, open
		}
		return -1, open
	}
	return i, open
}

// PassName checks the name of a member at i, and the colon after it. It returns where the
// name's closing quote and the member's value are; value is -1 where it is not JSON.
func PassName(s string, i int) (quote, value int) {
	if At(s, i) != '"' {
		return 0, -1
	}
	end := PassString(s, i)
	if end < 0 {
		return 0, -1
	}
	if i = Space(s, end); At(s, i) != ':' {
		return 0, -1
	}
	return end - 1, Space(s, i+1)
}

// PassString checks the string whose opening quote is at i, and returns its end, or -1.
func PassString(s string, i int) int {
	for i++; i < len(s); {
		if len(s)-i >= 8 {
			w := eight(s[i:])
			special := below(w^quotes, 1) | below(w^backslashes, 1) | below(w, ' ')
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) / 8
		}
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = escape(s, i); i < 0 {
				return -1
			}
		case c < ' ':
			return -1
		default:
			i++
		}
	}
	return -1
}

const (
	ones        = 0x0101010101010101
	quotes      = '"' * ones
	backslashes = '\\' * ones
)

// below marks the top bit of the lowest byte of w that is below n, which is 128 at most.
// Higher bytes may be marked by mistake.
func below(w, n uint64) uint64 { return (w - n*ones) &^ w & (0x80 * ones) }

// eight is the first eight bytes of s, the first one lowest.
func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// escape checks the escape whose backslash is at i, and returns its end, or -1.
func escape(s string, i int) int {
	switch At(s, i+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if c := At(s, k) | 0x20; !digit(At(s, k)) && (c < 'a' || c > 'f') {
				return -1
			}
		}
		return i + 6
	}
	return -1
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func word(s string, i int, w string) int {
	if len(s)-i < len(w) || s[i:i+len(w)] != w {
		return -1
	}
	return i + len(w)
}

// number checks the number at i.
func number(s string, i int) int {
	if At(s, i) == '-' {
		i++
	}
	switch {
	case At(s, i) == '0':
		i++
	case !digit(At(s, i)):
		return -1
	default:
		i = digits(s, i)
	}
	if At(s, i) == '.' {
		if i++; !digit(At(s, i)) {
			return -1
		}
		i = digits(s, i)
	}
	if At(s, i)|0x20 == 'e' {
		if i++; At(s, i) == '+' || At(s, i) == '-' {
			i++
		}
		if !digit(At(s, i)) {
			return -1
		}
		i = digits(s, i)
	}
	return i
}

func digits(s string, i int) int {
	for i < len(s) && digit(s[i]) {
		i++
	}
	return i
}
