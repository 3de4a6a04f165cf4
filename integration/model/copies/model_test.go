package copies

import (
	"fmt"
	"testing"
)

func play(seed uint64, m Mutant) error {
	w := New(seed, m)
	for n := range 120 {
		if err := w.Step(); err != nil {
			return fmt.Errorf("step %d: %w", n, err)
		}
	}
	return nil
}

// No play of the copies shows an erased person, or brings a forgotten erasure back.
func TestCopies(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20_000) {
		if err := play(seed, None); err != nil {
			t.Fatalf("seed %d, %v", seed, err)
		}
	}
}

// Each guard is needed: without it a play fails.
func TestMutants(t *testing.T) {
	t.Parallel()
	for _, m := range Mutants {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20_000) {
				if play(seed, m) != nil {
					return
				}
			}
			t.Error("no play found it")
		})
	}
}
