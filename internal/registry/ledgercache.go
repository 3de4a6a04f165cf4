package registry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
)

// LedgerStaleness is how old a LedgerCache's answer may be. An erasure waits so
// long after its entry was written before it relies on everybody knowing it.
const LedgerStaleness = time.Second

// LedgerCache answers for a process that asks often. It is safe for concurrent
// use and holds every topic's entries, at most ledger.MaxErasures each.
type LedgerCache struct {
	reg *Registry

	mu     sync.Mutex
	all    map[string]ledger.Erasures
	behind map[string][]string // see Registry.Behind
	read   time.Time           // when the reading began
}

// NewLedgerCache makes a cache that has read nothing yet.
func NewLedgerCache(r *Registry) *LedgerCache { return &LedgerCache{reg: r} }

// Of is the ledger of a topic for a reader, at most LedgerStaleness old. It is ErrBehind where
// ClickHouse does not have what erasures of the topic did.
func (c *LedgerCache) Of(ctx context.Context, topic string) (ledger.Erasures, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fresh(ctx); err != nil {
		return nil, err
	}
	return c.all[topic], behind(topic, c.behind[topic])
}

// ForWriter is Of for a part that writes rows and shows none. An erasure whose rows were all
// counted and taken has ended for it, also where its entry does not say so yet.
func (c *LedgerCache) ForWriter(ctx context.Context, topic string) (ledger.Erasures, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fresh(ctx); err != nil {
		return nil, err
	}
	return c.reg.counted(ctx, c.all[topic])
}

// Ready is ErrBehind where Of would be for any topic.
func (c *LedgerCache) Ready(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fresh(ctx); err != nil {
		return err
	}
	for topic, ids := range c.behind {
		return behind(topic, ids)
	}
	return nil
}

// fresh reads the ledger again where it is too old.
func (c *LedgerCache) fresh(ctx context.Context) error {
	now := time.Now()
	if c.all != nil && now.Sub(c.read) <= LedgerStaleness {
		return nil
	}
	all, err := c.reg.Ledgers(ctx)
	if err != nil {
		return err
	}
	behind, err := c.reg.Behind(ctx, all)
	if err != nil {
		return err
	}
	c.all, c.behind, c.read = all, behind, now
	return nil
}

func behind(topic string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return fmt.Errorf("%w of topic %q: %s; a sink carries them out again by itself, then the topic can be read. `almanac erase resume %s` does it at once", ErrBehind, topic, strings.Join(ids, ", "), ids[0])
}
