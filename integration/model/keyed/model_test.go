package keyed

import (
	"flag"
	"testing"
)

var seeds = flag.Int("seeds", 3_000, "how many seeds TestModel plays")

// Whatever happens, an event of a request that is sent again in time is stored once.
func TestModel(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(*seeds) {
		w, err := Run(seed, None)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for what, n := range w.Seen {
			seen[what] += n
		}
	}
	t.Log(seen)
	for _, what := range []string{"known to EVENTS", "known by its part", "known by its window"} {
		if seen[what] == 0 {
			t.Errorf("no frame was %s", what)
		}
	}
}

// Each guard that is left out shows.
func TestMutants(t *testing.T) {
	t.Parallel()
	for name, breaks := range Mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10_000) {
				if _, err := Run(seed, breaks); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("survives 10,000 seeds")
		})
	}
}
