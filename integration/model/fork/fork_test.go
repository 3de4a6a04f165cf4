package fork

import (
	"os"
	"strconv"
	"testing"
)

// seeds is how many are played: ALMANAC_MODEL_SEEDS, or 3,000.
func seeds(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("ALMANAC_MODEL_SEEDS"), 10, 64)
	if err != nil {
		return 3000
	}
	return n
}

func TestFork(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t) {
		if err := newWorld(seed, "").play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// Each guard is needed: without it a seed finds an event that is lost or stored twice.
func TestMutants(t *testing.T) {
	t.Parallel()
	for _, guard := range []string{
		"the end is compared", "a router fences before it seals", "a fork is judged once it is sealed", "a fork is judged once",
		"what is stored is not moved", "a move goes on after the last frame", "frames are deleted once they are moved",
	} {
		t.Run(guard, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(3000) {
				if newWorld(seed, guard).play() != nil {
					return
				}
			}
			t.Error("no seed tells that it is missing")
		})
	}
}
