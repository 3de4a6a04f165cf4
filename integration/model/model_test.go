package model

import (
	"cmp"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seeds  = flag.Int("seeds", 10_000, "how many seeds TestModel plays")
	seed   = flag.Int64("seed", -1, "have TestModel play this seed alone")
	mutant = flag.String("mutant", "", "have TestModel play this mutant, by its name")
	lines  = flag.Int("lines", 100, "how many steps of a violation's trace to print")
)

// The protocol holds under every fault there is.
func TestModel(t *testing.T) {
	m := mutantOf(t, *mutant)
	if *seed >= 0 {
		replay(t, uint64(*seed), m)
		return
	}
	var mu sync.Mutex
	var sum Result
	began := time.Now()
	caught := sweep(*seeds, m.options(), func(r *Result) {
		mu.Lock()
		defer mu.Unlock()
		sum.add(r)
	})
	if caught < *seeds {
		replay(t, uint64(caught), m)
		return
	}
	t.Logf("%d seeds, %d steps, %.0f simulated days, in %s\n%s", *seeds, sum.Steps, sum.Simulated.Hours()/24,
		time.Since(began).Round(time.Millisecond), sum.table())
	if *seeds < enough {
		return
	}
	for f, n := range sum.Faults {
		if n == 0 {
			t.Errorf("%q never struck: the test has lost its bite", Fault(f))
		}
	}
	for s, n := range sum.Sights {
		if n == 0 {
			t.Errorf("%q were never seen: the test has lost its bite", Sight(s))
		}
	}
}

// enough seeds show every fault and every sight.
const enough = 10_000

// Every mutant is caught, and so is the loss of anything the protocol stands on.
// Of two guards that cover one another each alone may go, and only both together
// are missed.
func TestMutants(t *testing.T) {
	const (
		atMost  = 40_000 // seeds that a mutant may survive; one that leaves shards early is caught by one in 20,000
		atLeast = 1_000  // seeds that a covered one must
	)
	type row struct {
		name  string
		seeds int
		how   error
	}
	var rows []row
	for _, m := range slices.Concat(Mutants, Grounds) {
		caught := sweep(atMost, m.options(), nil)
		if caught == atMost {
			t.Errorf("survives %d seeds: %s", atMost, m.Name)
			continue
		}
		o := m.options()
		o.Seed = uint64(caught)
		rows = append(rows, row{m.Name, caught + 1, Run(o).Violation})
		for _, alone := range m.Alone {
			if caught := sweep(atLeast, Options{Breaks: alone}, nil); caught < atLeast {
				t.Errorf("%s: one of the two is caught alone, by seed %d", m.Name, caught)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.seeds, b.seeds) })
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%7d  %-66s  %v\n", r.seeds, r.name, r.how)
	}
	t.Logf("seeds until caught:\n%s", b.String())
}

// The same seed is the same run, step for step.
func TestSeedDecidesEverything(t *testing.T) {
	for seed := range uint64(20) {
		a, b := Run(Options{Seed: seed, Trace: true}), Run(Options{Seed: seed, Trace: true})
		if !slices.Equal(a.Trace, b.Trace) || len(a.Trace) == 0 {
			t.Fatalf("seed %d went two ways", seed)
		}
	}
}

// sweep plays seeds from 0 to n-1, on every processor, until one is in violation.
// The lowest such seed is the answer; n when all pass.
func sweep(n int, o Options, each func(*Result)) (caught int) {
	var next, lowest atomic.Int64
	lowest.Store(int64(n))
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				s := next.Add(1) - 1
				if s >= lowest.Load() {
					return
				}
				o := o
				o.Seed = uint64(s)
				r := Run(o)
				if each != nil {
					each(&r)
				}
				for old := lowest.Load(); r.Violation != nil && s < old && !lowest.CompareAndSwap(old, s); {
					old = lowest.Load()
				}
			}
		})
	}
	wg.Wait()
	return int(lowest.Load())
}

// replay plays one seed and prints the end of its trace when it is in violation.
func replay(t *testing.T, seed uint64, m Mutant) {
	t.Helper()
	o := m.options()
	o.Seed, o.Trace = seed, true
	r := Run(o)
	if r.Violation == nil {
		t.Logf("seed %d passes:\n%s", seed, r.table())
		return
	}
	t.Errorf("seed %d: %v\n%s\nplay it again: go test ./integration/model -run TestModel -seed %d -lines 100000",
		seed, r.Violation, strings.Join(r.Trace[max(0, len(r.Trace)-*lines):], "\n"), seed)
}

// mutantOf finds a mutant by its name; no name is the true protocol.
func mutantOf(t *testing.T, name string) Mutant {
	for _, m := range slices.Concat([]Mutant{{}}, Mutants, Grounds) {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("there is no mutant %q", name)
	return Mutant{}
}

func (m *Mutant) options() Options { return Options{Breaks: m.Breaks, Storm: m.Storm} }

func (r *Result) add(other *Result) {
	r.Steps += other.Steps
	r.Simulated += other.Simulated
	for i, n := range other.Faults {
		r.Faults[i] += n
	}
	for i, n := range other.Sights {
		r.Sights[i] += n
	}
}

func (r *Result) table() string {
	var b strings.Builder
	for f, n := range r.Faults {
		fmt.Fprintf(&b, "%10d  %s\n", n, Fault(f))
	}
	fmt.Fprintln(&b)
	for s, n := range r.Sights {
		fmt.Fprintf(&b, "%10d  %s\n", n, Sight(s))
	}
	return b.String()
}
