package faults

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// SeedEnv repeats a run.
const SeedEnv = "ALMANAC_FAULT_SEED"

// Seed is the source of a test's faults, printed so that it can be repeated.
func Seed(t testing.TB) (uint64, *rand.Rand) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv(SeedEnv); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("%s is %q, it must be a number", SeedEnv, v)
		}
		seed = n
	}
	t.Logf("seed: %s=%d", SeedEnv, seed)
	return seed, rand.New(rand.NewPCG(seed, 1))
}

// RoundsEnv is how often the tests go through their faults; 1 is what `make test` does.
const RoundsEnv = "ALMANAC_FAULT_ROUNDS"

// Rounds of a test.
func Rounds(t testing.TB) int {
	t.Helper()
	v := os.Getenv(RoundsEnv)
	if v == "" {
		return 1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, it must be a number from 1", RoundsEnv, v)
	}
	return n
}

// Between is a duration drawn evenly from [lo, hi).
func Between(rnd *rand.Rand, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(rnd.Int64N(int64(hi-lo)))
}
