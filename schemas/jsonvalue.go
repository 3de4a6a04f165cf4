package schemas

import (
	"math"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas/internal/jsonwalk"
)

// JSONAttr is a valid JSON value as an attribute, typed where that prints what was
// written. A string's text shares the memory of value.
func JSONAttr(key, value string) Attr {
	switch value[0] {
	case '"', '{', '[':
		return String(key, jsonwalk.Raw(value).Text())
	case 't', 'f':
		return Bool(key, value[0] == 't')
	}
	if wholeNumber(value) && value != "-0" {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return Int64(key, n)
		}
	}
	if len(value) <= maxFloatDigits {
		f, err := strconv.ParseFloat(value, 64)
		a, buf := Float64(key, f), [maxFloatDigits]byte{}
		if err == nil && (printsAlike(value) || string(a.AppendText(buf[:0])) == value || onlyZerosAfterPoint(value) && math.Abs(f) < 1<<53) {
			return a
		}
	}
	return String(key, value)
}

// wholeNumber reports whether a JSON number has no point and no exponent. strings.ContainsAny
// takes four times as long.
func wholeNumber(value string) bool {
	for i := range len(value) {
		if c := value[i]; c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}

// maxFloatDigits is the longest text a float64 prints: sign, 17 digits, point,
// and an exponent of five characters.
const maxFloatDigits = 24

// printsAlike reports of some JSON numbers that a float64 prints them as they are written: at
// most six digits before the point and nine after it, the last of them not 0. A float64 has 15
// digits (DBL_DIG), and is printed without an exponent from 0.0001 up to a million.
func printsAlike(value string) bool {
	point := strings.IndexByte(value, '.')
	if point < 1 || point > 6 || value[0] == '0' || value[0] == '-' {
		return false
	}
	fraction := value[point+1:]
	return len(fraction) <= 9 && fraction[len(fraction)-1] != '0' && wholeNumber(fraction)
}

func onlyZerosAfterPoint(s string) bool {
	whole, frac, ok := strings.Cut(s, ".")
	return ok && whole != "-0" && strings.Trim(frac, "0") == ""
}
