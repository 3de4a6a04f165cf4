package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// Buckets are a histogram: Counts has, for each of Bounds, how many values lie above the bound
// before it and up to it, and then how many lie above all.
type Buckets struct {
	Bounds []float64 `json:"bounds"`
	Counts []uint64  `json:"counts"`
}

// maxBuckets bounds the buckets of a histogram.
const maxBuckets = 1000

// ParseBuckets reads a histogram, and refuses one that is not one.
func ParseBuckets(text []byte) (b Buckets, err error) {
	bad := func(format string, a ...any) (Buckets, error) {
		return Buckets{}, fmt.Errorf("%w: "+format, append([]any{ErrValue}, a...)...)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil || d.More() {
		return bad(`buckets are %.80q, they must be {"bounds": […], "counts": […]} with whole counts`, text)
	}
	if len(b.Bounds) > maxBuckets || len(b.Counts) != len(b.Bounds)+1 {
		return bad("buckets have %d bounds and %d counts, they must have one count more than bounds and at most %d bounds", len(b.Bounds), len(b.Counts), maxBuckets)
	}
	for i := 1; i < len(b.Bounds); i++ {
		if !(b.Bounds[i-1] < b.Bounds[i]) {
			return bad("buckets have the bound %g after %g, they must rise", b.Bounds[i], b.Bounds[i-1])
		}
	}
	left := uint64(math.MaxInt64)
	for _, c := range b.Counts {
		if c > left {
			return bad("the counts of buckets add up to more than %d", int64(math.MaxInt64))
		}
		left -= c
	}
	return b, nil
}

// Sum is how many values the histogram has.
func (b *Buckets) Sum() (n uint64) {
	for _, c := range b.Counts {
		n += c
	}
	return n
}

// CheckBuckets holds a text to the rule that it is empty or a histogram of so many values.
func CheckBuckets(rule *kinds.Rule, text []byte, count int64) error {
	if len(text) == 0 {
		return nil
	}
	b, err := ParseBuckets(text)
	if err != nil {
		return err
	}
	if n := b.Sum(); n != uint64(count) {
		return fmt.Errorf("%w: the counts of %s add up to %d, %s is %d", ErrValue, rule.Column, n, rule.BucketsOf, count)
	}
	return nil
}
