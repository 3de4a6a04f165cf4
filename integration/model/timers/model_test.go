package timers

import (
	"os"
	"strconv"
	"testing"
)

// ALMANAC_TIMERS_SEEDS plays so many.
func TestModel(t *testing.T) {
	t.Parallel()
	seeds := uint64(2000)
	if n, err := strconv.ParseUint(os.Getenv("ALMANAC_TIMERS_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for seed := range seeds {
		if wrong := Play(seed, Nothing); wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
	}
}

// Each guard that is taken away is found out.
func TestMutants(t *testing.T) {
	t.Parallel()
	for name, broken := range Breaks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5000) {
				if wrong := Play(seed, broken); wrong != "" {
					t.Logf("seed %d: %s", seed, wrong)
					return
				}
			}
			t.Error("nothing was found")
		})
	}
}
