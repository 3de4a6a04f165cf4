package decide

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestUnusual(t *testing.T) {
	t.Parallel()
	day := []float64{100, 104, 97, 101, 99, 103, 98} // median 100, deviation 1.4826 · 2 is below the least one, which is 5
	wide := []float64{10, 200, 90, 160, 40, 110, 100}
	for name, c := range map[string]struct {
		usual  Usual
		value  float64
		before []float64
		want   bool
	}{
		"as always":                    {Usual{5, 0}, 105, day, false},
		"at the edge":                  {Usual{5, 0}, 125, day, false},
		"above it":                     {Usual{5, 0}, 125.1, day, true},
		"below it":                     {Usual{5, 0}, 74.9, day, true},
		"none any more":                {Usual{5, 0}, 0, day, true},
		"fewer deviations":             {Usual{1, 0}, 105.1, day, true},
		"too little to count":          {Usual{5, 30}, 126, day, false},
		"enough to count":              {Usual{5, 30}, 130, day, true},
		"the least that counts alone":  {Usual{5, 200}, 290, day, false},
		"what varies varies":           {Usual{3, 0}, 300, wide, false}, // median 100, distances 90 100 10 60 60 10 0: deviation 88.956
		"more than it varies":          {Usual{2, 0}, 280, wide, true},
		"one day that stands out":      {Usual{5, 0}, 110, []float64{100, 9000, 100, 101, 99, 100, 100}, false},
		"it stands out again":          {Usual{5, 0}, 9000, []float64{100, 9000, 100, 101, 99, 100, 100}, true},
		"nothing before":               {Usual{5, 0}, 1e9, nil, false},
		"a new one":                    {Usual{5, 0}, 1e9, []float64{5, 5, 0, 0, 0, 0, 0}, false},
		"three days old":               {Usual{5, 0}, 1e9, []float64{5, 5, 5, 0, 0, 0, 0}, true},
		"one that paused":              {Usual{5, 0}, 5, []float64{0, 0, 5, 5, 5, 5, 5}, false},
		"rare, and the least is given": {Usual{5, 10}, 9, []float64{0, 0, 0, 0, 7}, false},
		"rare":                         {Usual{5, 0}, 1, []float64{0, 0, 0, 0, 7}, true},
		"even":                         {Usual{1, 0}, 16, []float64{10, 20, 10, 20}, false}, // median 15, deviation 7.413
		"what is taken back":           {Usual{5, 0}, 100, []float64{-100, -101, -99}, true},
		"the largest numbers":          {Usual{5, 0}, math.MaxFloat64, []float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.usual.Unusual(c.value, c.before); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

// What is unusual stays so further out and with fewer deviations, and does not depend on the order of what was before, nor on the unit.
func TestUnusualHolds(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		before := make([]float64, 3+r.IntN(20))
		for i := range before {
			before[i] = float64(1 + r.IntN(1000))
		}
		u, v := Usual{1 + 5*r.Float64(), float64(r.IntN(500))}, 3000*r.Float64()-500
		got, middle := u.Unusual(v, before), median(before)
		if got && !u.Unusual(middle+2*(v-middle), before) {
			t.Fatalf("seed %d: %v is unusual after %v, and twice as far it is not (%+v)", seed, v, before, u)
		}
		if got && !(Usual{u.Deviations / 2, u.Least}).Unusual(v, before) {
			t.Fatalf("seed %d: %v is unusual after %v, and by half of the deviations it is not (%+v)", seed, v, before, u)
		}
		scaled := make([]float64, len(before))
		for i := range before {
			scaled[i] = 1024 * before[i] // exact
		}
		if (Usual{u.Deviations, 1024 * u.Least}).Unusual(1024*v, scaled) != got {
			t.Fatalf("seed %d: %v after %v is otherwise in another unit (%+v)", seed, v, before, u)
		}
		r.Shuffle(len(before), func(i, j int) { before[i], before[j] = before[j], before[i] })
		if u.Unusual(v, before) != got {
			t.Fatalf("seed %d: %v after %v is otherwise in another order (%+v)", seed, v, before, u)
		}
	}
}
