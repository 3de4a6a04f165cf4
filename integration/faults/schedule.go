package faults

import (
	"math/rand/v2"
	"time"
)

// Step is one fault of a run, and what it draws from.
type Step struct {
	Fault Fault
	Rand  *rand.Rand
	// Pause is the quiet time after it has healed.
	Pause time.Duration
}

// Schedule is the order of the faults of a run: every fault once in each round, shuffled again. It follows from the seed
// alone, and so does all that a fault draws, however long the ones before it took.
type Schedule struct {
	seed   uint64
	faults []Fault
	order  []int
	n      int
}

// NewSchedule begins a run's plan.
func NewSchedule(seed uint64, faults []Fault) *Schedule { return &Schedule{seed: seed, faults: faults} }

// Next is the next fault.
func (s *Schedule) Next() Step {
	rnd := rand.New(rand.NewPCG(s.seed, uint64(s.n)+1<<32))
	if s.n++; len(s.order) == 0 {
		s.order = rnd.Perm(len(s.faults))
	}
	f := s.faults[s.order[0]]
	s.order = s.order[1:]
	return Step{Fault: f, Rand: rnd, Pause: Between(rnd, 0, time.Second)}
}
