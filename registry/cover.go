package registry

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Cover is the erasures that concern some frames: those of one message of EVENTS
// or of several that the same erasures mean.
type Cover []Erasure

// Covering are the erasures that concern a frame of a message of EVENTS, with
// events between minTs and maxTs (unix ns). For most frames there is none, and
// they may pass untouched.
func (l *Ledger) Covering(s schemas.Source, minTs, maxTs int64) Cover {
	if l == nil {
		return nil
	}
	var c Cover
	for i := range l.Erasures {
		if l.Erasures[i].Covers(s, minTs, maxTs) {
			c = append(c, l.Erasures[i])
		}
	}
	return c
}

// Alike reports whether the same erasures mean two messages of EVENTS. Frames that
// are all alike can be judged in one statement, by the cover of any of them and of
// all their times.
func (l *Ledger) Alike(a, b schemas.Source) bool {
	if l == nil {
		return true
	}
	for i := range l.Erasures {
		if l.Erasures[i].Means(a) != l.Erasures[i].Means(b) {
			return false
		}
	}
	return true
}

// Only keeps the erasures that are in one of the states.
func (l *Ledger) Only(states ...ErasureState) *Ledger {
	out := &Ledger{}
	for _, e := range l.Erasures {
		for _, s := range states {
			if e.State == s {
				out.Erasures = append(out.Erasures, e)
			}
		}
	}
	return out
}

// Keep is the condition that holds for the events no erasure of the cover means,
// "1" for an empty cover, and its parameters, all of whose names begin with "e".
func (c Cover) Keep() (cond string, params map[string]string) {
	if len(c) == 0 {
		return "1", nil
	}
	params = map[string]string{}
	conds := make([]string, len(c))
	for i := range c {
		match, more := c[i].Match(fmt.Sprintf("e%d", i))
		maps.Copy(params, more)
		conds[i] = "NOT " + match
	}
	return strings.Join(conds, " AND "), params
}

// Schema is the schema version whose columns the conditions use: the highest of
// the cover's.
func (c Cover) Schema() int {
	v := 0
	for i := range c {
		v = max(v, c[i].Schema)
	}
	return v
}

// LedgerStaleness is how old a LedgerCache's answer may be. An erasure waits so
// long after its entry was written before it relies on everybody knowing it.
const LedgerStaleness = time.Second

// LedgerCache answers for a process that asks often. It is safe for concurrent
// use and holds every topic's entries, at most MaxErasures each.
type LedgerCache struct {
	reg *Registry

	mu   sync.Mutex
	all  map[string]*Ledger
	read time.Time // when the reading began
}

// NewLedgerCache makes a cache that has read nothing yet.
func NewLedgerCache(r *Registry) *LedgerCache { return &LedgerCache{reg: r} }

// Of is the ledger of a topic, at most LedgerStaleness old.
func (c *LedgerCache) Of(ctx context.Context, topic string) (*Ledger, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.all == nil || now.Sub(c.read) > LedgerStaleness {
		all, err := c.reg.Ledgers(ctx)
		if err != nil {
			return nil, err
		}
		c.all, c.read = all, now
	}
	if l := c.all[topic]; l != nil {
		return l, nil
	}
	return &Ledger{}, nil
}
