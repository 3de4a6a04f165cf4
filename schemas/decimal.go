package schemas

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
)

// A decimal field is Decimal(38, 18): a whole number of 10^-18 in DecimalBytes bytes,
// little-endian, in two's complement.
const (
	DecimalScale  = 18
	decimalDigits = 38
	DecimalBytes  = 16
)

// Decimal is a value of a decimal field.
type Decimal struct{ lo, hi uint64 }

// IsZero reports whether d is zero.
func (d Decimal) IsZero() bool { return d == Decimal{} }

func (d Decimal) negate() Decimal {
	lo, borrow := bits.Sub64(0, d.lo, 0)
	hi, _ := bits.Sub64(0, d.hi, borrow)
	return Decimal{lo, hi}
}

// parseDecimal reads a decimal number, also with an exponent. It is false for what is no
// number, and for one that a decimal field cannot hold exactly: at most 20 digits before
// the point and 18 after it.
func parseDecimal(s string) (d Decimal, ok bool) {
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	shift := DecimalScale
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exp, err := strconv.Atoi(s[i+1:])
		if err != nil || exp < -1000 || exp > 1000 {
			return d, false
		}
		s, shift = s[:i], shift+exp
	}
	whole, part, _ := strings.Cut(s, ".")
	if whole == "" && part == "" {
		return d, false
	}
	part = strings.TrimRight(part, "0")
	shift -= len(part)
	digits := 0 // from the first that is not zero
	for _, text := range []string{whole, part} {
		for i := range len(text) {
			c := text[i]
			if c < '0' || c > '9' {
				return d, false
			}
			if digits == 0 && c == '0' {
				continue
			}
			if digits++; digits > decimalDigits+DecimalScale {
				return d, false
			}
			if digits > decimalDigits { // only zeros may follow, which a shift below zero takes away
				if c != '0' {
					return d, false
				}
				shift++
				continue
			}
			d = d.timesTen(uint64(c - '0'))
		}
	}
	for ; shift > 0 && !d.IsZero(); shift-- {
		if digits++; digits > decimalDigits {
			return Decimal{}, false
		}
		d = d.timesTen(0)
	}
	for ; shift < 0 && !d.IsZero(); shift++ {
		tenth, digit := d.dividedBy(10)
		if digit != 0 {
			return Decimal{}, false
		}
		d = tenth
	}
	if negative {
		d = d.negate()
	}
	return d, true
}

// timesTen is ten times d and one digit more. d has fewer than 38 digits.
func (d Decimal) timesTen(digit uint64) Decimal {
	over, lo := bits.Mul64(d.lo, 10)
	lo, carry := bits.Add64(lo, digit, 0)
	return Decimal{lo, d.hi*10 + over + carry}
}

// dividedBy divides d, which is not negative, by a number of 64 bits.
func (d Decimal) dividedBy(by uint64) (quotient Decimal, rest uint64) {
	hi, r := bits.Div64(0, d.hi, by)
	lo, r := bits.Div64(r, d.lo, by)
	return Decimal{lo, hi}, r
}

// AppendText writes the number without zeros at its end, as ClickHouse does.
func (d Decimal) AppendText(dst []byte) []byte {
	if int64(d.hi) < 0 {
		dst, d = append(dst, '-'), d.negate()
	}
	// d has at most 38 digits: high is the first 19 of them, low the others, and each fits 64 bits.
	const tenTo19 = 10_000_000_000_000_000_000
	upper, low := d.dividedBy(tenTo19)
	_, high := upper.dividedBy(tenTo19)
	text := strconv.AppendUint(nil, high, 10)
	if high > 0 {
		tail := strconv.FormatUint(low, 10)
		text = append(append(text, strings.Repeat("0", 19-len(tail))...), tail...)
	} else {
		text = strconv.AppendUint(text[:0], low, 10)
	}
	if len(text) <= DecimalScale {
		text = append([]byte(strings.Repeat("0", DecimalScale+1-len(text))), text...)
	}
	point := len(text) - DecimalScale
	dst = append(dst, text[:point]...)
	if part := strings.TrimRight(string(text[point:]), "0"); part != "" {
		dst = append(append(dst, '.'), part...)
	}
	return dst
}

// AppendWire appends the bytes that a frame has of the number.
func (d Decimal) AppendWire(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, d.lo), d.hi)
}

// DecodeDecimal reads what AppendWire wrote.
func DecodeDecimal(b []byte) Decimal {
	return Decimal{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// AsDecimal is the value as a decimal, when it is one exactly.
func (a *Attr) AsDecimal() (Decimal, bool) {
	if a.kind == KindBool || a.kind == KindTime {
		return Decimal{}, false
	}
	return parseDecimal(a.Text())
}
