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
	if !strings.ContainsAny(value, ".eE") && value != "-0" {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return Int64(key, n)
		}
	}
	if len(value) <= maxFloatDigits {
		f, err := strconv.ParseFloat(value, 64)
		a, buf := Float64(key, f), [maxFloatDigits]byte{}
		if err == nil && (string(a.AppendText(buf[:0])) == value || onlyZerosAfterPoint(value) && math.Abs(f) < 1<<53) {
			return a
		}
	}
	return String(key, value)
}

// maxFloatDigits is the longest text a float64 prints: sign, 17 digits, point,
// and an exponent of five characters.
const maxFloatDigits = 24

func onlyZerosAfterPoint(s string) bool {
	whole, frac, ok := strings.Cut(s, ".")
	return ok && whole != "-0" && strings.Trim(frac, "0") == ""
}
