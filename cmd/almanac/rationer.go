package main

import (
	"maps"
	"sync"
	"time"
)

// rationer lets one message of a kind through in a while: a fault that comes a
// hundred times a second is told once, with how often it was held back. Kinds
// beyond a bound are one kind.
type rationer struct {
	period time.Duration
	most   int

	mu     sync.Mutex
	seen   map[string]*ration
	others ration // of the kinds beyond the bound
}

type ration struct {
	at   time.Time
	held int
}

const (
	// rationPeriod is how far apart errors of a kind are written: a dozen lines a minute, with how many were held back.
	rationPeriod = 5 * time.Second
	// maxRations bounds the kinds that are told apart.
	maxRations = 1000
)

func newRationer() *rationer { return rationerOf(rationPeriod, maxRations) }

func rationerOf(period time.Duration, most int) *rationer {
	return &rationer{period: period, most: most, seen: map[string]*ration{}}
}

func (r *rationer) pass(kind string) (held int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	s := r.seen[kind]
	if s == nil && len(r.seen) >= r.most && now.Sub(r.others.at) >= r.period { // else the last look found none to forget
		maps.DeleteFunc(r.seen, func(_ string, s *ration) bool { return now.Sub(s.at) >= r.period })
	}
	switch {
	case s != nil:
	case len(r.seen) < r.most:
		r.seen[kind] = &ration{at: now}
		return 0, true
	default:
		s = &r.others
	}
	if now.Sub(s.at) < r.period {
		s.held++
		return 0, false
	}
	held, s.at, s.held = s.held, now, 0
	return held, true
}
