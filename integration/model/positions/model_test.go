package positions

import (
	"os"
	"strconv"
	"testing"
)

// seeds is how many are played: ALMANAC_MODEL_SEEDS, or 2,000.
func seeds(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("ALMANAC_MODEL_SEEDS"), 10, 64)
	if err != nil {
		return 2000
	}
	return n
}

func TestPositions(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t) {
		if err := newWorld(seed, "").play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// Each guard is needed: without it a seed finds a row that is lost, doubled, not erased, or at another
// position than its frame's.
func TestMutants(t *testing.T) {
	t.Parallel()
	for _, guard := range []string{
		ofItsFrame, numberedFirst, ofNoOther, refusesItself, assertsHead, floorRead, struck, floorFirst, toTheBound, byPosition,
	} {
		t.Run(guard, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20_000) {
				if newWorld(seed, guard).play() != nil {
					return
				}
			}
			t.Error("no seed tells that it is missing")
		})
	}
}
