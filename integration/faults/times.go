package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Times are how long things took, by what they were.
type Times struct {
	mu   sync.Mutex
	took map[string][]time.Duration
}

// Add notes one.
func (t *Times) Add(what string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.took == nil {
		t.took = map[string][]time.Duration{}
	}
	t.took[what] = append(t.took[what], d)
}

// Count is how many of a kind there were.
func (t *Times) Count(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.took[what])
}

// quantile of sorted durations, rounded up to the one that covers q.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// All are the durations of all kinds together, sorted.
func (t *Times) All() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []time.Duration
	for _, d := range t.took {
		all = append(all, d...)
	}
	slices.Sort(all)
	return all
}

// Kinds are all there were, sorted.
func (t *Times) Kinds() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.took))
}

// Of are the durations of one kind, sorted.
func (t *Times) Of(what string) []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.took[what]))
}

// String is a table: kind, how many, median, p99, longest.
func (t *Times) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s %6s %8s %8s %8s", "fault", "times", "p50", "p99", "max")
	line := func(what string, d []time.Duration) {
		fmt.Fprintf(&b, "\n%-34s %6d %7.1fs %7.1fs %7.1fs", what, len(d),
			quantile(d, 0.5).Seconds(), quantile(d, 0.99).Seconds(), quantile(d, 1).Seconds())
	}
	for _, what := range t.Kinds() {
		line(what, t.Of(what))
	}
	line("all", t.All())
	return b.String()
}
