package filter

import (
	"math/big"
	"strconv"
	"strings"
)

// Whole numbers among the attributes compare exactly, however many digits they have: a float64
// has only those up to 2^53.

// WholeDigits bounds the whole numbers that compare exactly. An Int256 has all of so many digits.
const WholeDigits = 76

// maxExponent bounds the exponent of a number that is written out: a filter has fewer digits, so
// that what lies beyond is next to zero, or was out of range.
const maxExponent = 2 * MaxFilterBytes

// wholeEdge returns the whole number that stands for a number in a comparison with whole numbers
// by one of < <= > >=: x > 1.5 is x > 1, and x >= 1.5 is x >= 2.
func wholeEdge(o op, number string) string {
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		exp, err := strconv.Atoi(number[i+1:])
		if err != nil { // beyond an int
			exp = maxExponent
			if number[i+1] == '-' {
				exp = -maxExponent
			}
		}
		number = number[:i] + "e" + strconv.Itoa(min(max(exp, -maxExponent), maxExponent))
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return number // the grammar takes no such number
	}
	edge := new(big.Int).Div(r.Num(), r.Denom()) // rounds down: the denominator is above zero
	if (o == opGe || o == opLt) && !r.IsInt() {
		edge.Add(edge, big.NewInt(1))
	}
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(WholeDigits), nil)
	if edge.CmpAbs(limit) > 0 {
		if edge.Sign() < 0 {
			limit.Neg(limit)
		}
		edge = limit
	}
	return edge.String()
}
