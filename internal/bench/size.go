package bench

// Size is how much a suite measures. Reports of different sizes say different
// things, so only those of one size are compared.
type Size string

// The sizes.
const (
	// Full is what the bars are about.
	Full Size = "full"
	// Short is for bench-check: two fifths of the events, which leaves the ratios
	// of the whole way nearly what they are.
	Short Size = "short"
	// Quick is to see that everything works: its figures mean little.
	Quick Size = "quick"
)

// size is how many of n events, rows or shards are measured.
func (s *Suite) size(n int) int {
	switch s.Size {
	case Short:
		n = n * 2 / 5
	case Quick:
		n /= 20
	}
	return max(1, n)
}

// rounds is how often the halves of a ratio take turns.
func (s *Suite) rounds(n int) int {
	switch s.Size {
	case Short:
		n = min(n, 5)
	case Quick:
		n = 1
	}
	return n
}
