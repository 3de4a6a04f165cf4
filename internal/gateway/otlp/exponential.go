package otlp

import (
	"math"

	"github.com/almanac-events/almanac/schemas"
)

const (
	// maxScale bounds the scale of exponential histograms; exporters have -10 to 20.
	maxScale = 128
	// maxSide bounds the buckets of either side once they are explicit ones. One with more
	// gets a coarser scale.
	maxSide = 320
)

// side is the buckets of one sign: counts[i] is of the values above base^(offset+i) and up to
// base^(offset+i+1).
type side struct {
	offset int32
	counts []uint64
}

// trim takes away the empty buckets at both ends.
func (s *side) trim() {
	for len(s.counts) > 0 && s.counts[len(s.counts)-1] == 0 {
		s.counts = s.counts[:len(s.counts)-1]
	}
	for len(s.counts) > 0 && s.counts[0] == 0 {
		s.counts = s.counts[1:]
		s.offset++
	}
}

// coarser merges pairs of buckets: those of the scale that is less by one.
func (s *side) coarser() {
	var merged []uint64
	from := s.offset >> 1
	for i, n := range s.counts {
		if at := int((int64(s.offset)+int64(i))>>1 - int64(from)); at == len(merged) {
			merged = append(merged, n)
		} else {
			merged[at] += n
		}
	}
	s.offset, s.counts = from, merged
}

// explicit makes the buckets of an exponential histogram ones with bounds. Bounds that a float64
// cannot tell apart are one. A negative value at a bound itself counts below it here, and above
// it there.
func explicit(scale int32, positive, negative side, threshold float64, zeros uint64) schemas.Buckets {
	positive.trim()
	negative.trim()
	for len(positive.counts) > maxSide || len(negative.counts) > maxSide {
		positive.coarser()
		negative.coarser()
		scale--
	}
	step := math.Ldexp(1, -int(scale))
	bound := func(s *side, i int) float64 { return math.Exp2((float64(s.offset) + float64(i)) * step) }
	var b bounded
	if n := len(negative.counts); n > 0 {
		b.add(-bound(&negative, n), 0)
		for i := n - 1; i >= 0; i-- {
			b.add(-bound(&negative, i), negative.counts[i])
		}
	}
	if zeros > 0 {
		b.add(-threshold, 0)
		b.add(threshold, zeros)
	}
	if len(positive.counts) > 0 {
		b.add(bound(&positive, 0), 0)
		for i, n := range positive.counts {
			b.add(bound(&positive, i+1), n)
		}
	}
	return schemas.Buckets{Bounds: b.bounds, Counts: append(b.counts, b.carried)}
}

// bounded gathers buckets with bounds that rise.
type bounded struct {
	bounds  []float64
	counts  []uint64
	carried uint64 // of the next bucket
}

// add adds n values up to a bound.
func (b *bounded) add(bound float64, n uint64) {
	bound += 0 // -0 is 0
	last := len(b.bounds) - 1
	switch {
	case math.IsInf(bound, 0) || math.IsNaN(bound):
		b.carried += n
	case last >= 0 && bound <= b.bounds[last]:
		b.counts[last] += n
	default:
		b.bounds, b.counts, b.carried = append(b.bounds, bound), append(b.counts, b.carried+n), 0
	}
}
