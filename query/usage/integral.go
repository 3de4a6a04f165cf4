package usage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
)

// diff is a diff that counts, by its time in Unix milliseconds.
type diff struct {
	ms    int64
	delta int64
}

// numbers are what a set of diffs comes to between two instants.
type numbers struct {
	// Before is the size at the beginning, end the size at the end, usage the integral.
	before, end, usage big.Int
	// causesBefore diffs lie before the beginning, causes before the end.
	causesBefore, causes uint64
	repeats              uint64
}

// integral adds diffs up between from and to, in Unix milliseconds. It is the definition, and
// what the statements are held to.
func integral(diffs []diff, from, to int64) (n numbers) {
	for _, d := range diffs {
		if d.ms >= to {
			continue
		}
		delta := big.NewInt(d.delta)
		if d.ms < from {
			n.before.Add(&n.before, delta)
			n.causesBefore++
		}
		n.end.Add(&n.end, delta)
		n.causes++
		n.usage.Add(&n.usage, delta.Mul(delta, big.NewInt(to-max(d.ms, from))))
	}
	return n
}

// bucket is what the diffs of a span of time come to.
type bucket struct {
	from, to int64 // Unix ms
	delta    big.Int
	// Weighted is the sum of delta × (to − t).
	weighted        big.Int
	causes, repeats uint64
}

// running turns the buckets of a range into numbers, each of which begins with the size that
// the one before it left. before is the size at the beginning of the first.
func running(before *big.Int, buckets []bucket) []numbers {
	slices.SortFunc(buckets, func(a, b bucket) int { return cmp.Compare(a.from, b.from) })
	out := make([]numbers, len(buckets))
	var size big.Int
	size.Set(before)
	for i := range buckets {
		b, n := &buckets[i], &out[i]
		n.before.Set(&size)
		n.usage.Mul(&size, big.NewInt(b.to-b.from))
		n.usage.Add(&n.usage, &b.weighted)
		size.Add(&size, &b.delta)
		n.end.Set(&size)
		n.causes, n.repeats = b.causes, b.repeats
	}
	return out
}

// decimals are the digits of an average behind its point.
const decimals = 12

// average is usage divided by a length of time, truncated, without zeros at its end.
func average(usage *big.Int, ms int64) string {
	if text, ok := averageWords(usage, ms); ok {
		return text
	}
	return averageBig(usage, ms)
}

func averageBig(usage *big.Int, ms int64) string {
	scaled := new(big.Int).Mul(usage, pow10(decimals))
	scaled.Quo(scaled, big.NewInt(ms))
	return fixed(scaled, decimals)
}

// averageWords is average where it is below 2^64, in machine words: a report has up to a
// million.
func averageWords(usage *big.Int, ms int64) (string, bool) {
	if usage.BitLen() > 128 || ms <= 0 {
		return "", false
	}
	var abs [16]byte
	usage.FillBytes(abs[:])
	high, low, by := binary.BigEndian.Uint64(abs[:8]), binary.BigEndian.Uint64(abs[8:]), uint64(ms)
	if high >= by {
		return "", false
	}
	whole, rest := bits.Div64(high, low, by)
	high, low = bits.Mul64(rest, 1e12) // decimals; below 1e12 again after the division
	digits, _ := bits.Div64(high, low, by)
	text := make([]byte, 0, 40)
	if usage.Sign() < 0 && whole|digits != 0 {
		text = append(text, '-')
	}
	text = strconv.AppendUint(text, whole, 10)
	if digits > 0 {
		padded := strconv.AppendUint(nil, 1e12+digits, 10)[1:] // with the zeros before them
		text = append(append(text, '.'), bytes.TrimRight(padded, "0")...)
	}
	return string(text), true
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// fixed prints a number of units of 10^-n as a decimal, without zeros at its end.
func fixed(scaled *big.Int, n int) string {
	whole, rest := new(big.Int).QuoRem(new(big.Int).Abs(scaled), pow10(n), new(big.Int))
	text := whole.String()
	if rest.Sign() != 0 {
		digits := rest.String()
		for len(digits) < n {
			digits = "0" + digits
		}
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		text += "." + digits
	}
	if scaled.Sign() < 0 {
		text = "-" + text
	}
	return text
}
