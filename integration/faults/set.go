package faults

import "math/bits"

// Set is a set of small numbers.
type Set struct {
	words []uint64
	n     int
}

// Add puts n in and says whether it was new.
func (s *Set) Add(n uint64) bool {
	w := int(n / 64)
	if w >= len(s.words) {
		s.words = append(s.words, make([]uint64, max(w+1-len(s.words), len(s.words)))...)
	}
	if s.words[w]&(1<<(n%64)) != 0 {
		return false
	}
	s.words[w] |= 1 << (n % 64)
	s.n++
	return true
}

// Has says whether n is in.
func (s *Set) Has(n uint64) bool {
	w := int(n / 64)
	return w < len(s.words) && s.words[w]&(1<<(n%64)) != 0
}

// Len is how many are in.
func (s *Set) Len() int { return s.n }

// Without are the members that t does not have.
func (s *Set) Without(t *Set) []uint64 {
	var out []uint64
	for i, w := range s.words {
		if i < len(t.words) {
			w &^= t.words[i]
		}
		for ; w != 0; w &= w - 1 {
			out = append(out, uint64(i)*64+uint64(bits.TrailingZeros64(w)))
		}
	}
	return out
}
