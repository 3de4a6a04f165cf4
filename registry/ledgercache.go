package registry

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-events/almanac/registry/ledger"
)

// LedgerStaleness is how old a LedgerCache's answer may be. An erasure waits so
// long after its entry was written before it relies on everybody knowing it.
const LedgerStaleness = time.Second

// LedgerCache answers for a process that asks often. It is safe for concurrent
// use and holds every topic's entries, at most ledger.MaxErasures each.
type LedgerCache struct {
	reg *Registry

	mu   sync.Mutex
	all  map[string]ledger.Erasures
	read time.Time // when the reading began
}

// NewLedgerCache makes a cache that has read nothing yet.
func NewLedgerCache(r *Registry) *LedgerCache { return &LedgerCache{reg: r} }

// Of is the ledger of a topic, at most LedgerStaleness old.
func (c *LedgerCache) Of(ctx context.Context, topic string) (ledger.Erasures, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.all == nil || now.Sub(c.read) > LedgerStaleness {
		all, err := c.reg.Ledgers(ctx)
		if err != nil {
			return nil, err
		}
		c.all, c.read = all, now
	}
	return c.all[topic], nil
}
