package documents

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/query/archived"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

const (
	// knownAge is how old a snapshot may be that a list goes by. An old one knows less as stored,
	// so DOCS is read further down, and nothing else changes. It is half of what erasures wait
	// for (see lacksEnds).
	knownAge = registry.LedgerStaleness / 2
	// maxNewest is how many documents on their way may be read past, with their bodies; and by
	// how many a snapshot is too old.
	maxNewest = 64
	// maxKnown bounds the topics that a reader knows, at some kilobytes each.
	maxKnown = 1000
)

// known is what a reader knows of a topic as of one moment. It does not change.
type known struct {
	began    time.Time          // when the reading did
	snapshot *archived.Snapshot // nil once upTo is known
	upTo     map[int]uint64     // up to which sequence of DOCS each lane is stored
	erased   bool               // rows were erased at some time
	passed   ground
}

// knows returns what is known of a topic, and reads it where that is too old.
func (r *Reader) knows(ctx context.Context, t *schemas.Topic) (*known, error) {
	r.mu.Lock()
	old := r.known[t.Name]
	r.mu.Unlock()
	k := &known{began: time.Now()}
	if old != nil {
		if old.upTo != nil && k.began.Sub(old.began) < knownAge {
			return old, nil
		}
		k.passed = old.passed
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		k.snapshot, err = archived.Take(gctx, r.js, r.reg, r.db, t)
		return err
	})
	g.Go(func() error {
		tallies, err := r.reg.Tallies(gctx, t.Name)
		k.erased = len(tallies) > 0
		return err
	})
	return k, g.Wait()
}

// remember has later lists go by what one found: by its snapshot too, unless many documents
// were changed since.
func (r *Reader) remember(t *schemas.Topic, k *known, upTo map[int]uint64, passed ground, changed int) {
	next := &known{began: k.began, upTo: upTo, erased: k.erased, passed: passed}
	if changed > maxNewest {
		next.upTo = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxKnown {
		clear(r.known)
	}
	r.known[t.Name] = next
}

// lacksEnds reports whether an erasure may have taken the row that ended a life of a
// document, of what ClickHouse gave before. It is in the ledger, or the tally of a shard
// remembers it. One that is in neither was entered after both were read, and takes no row
// until readers have known it for registry.LedgerStaleness.
func (r *Reader) lacksEnds(ctx context.Context, t *schemas.Topic, k *known) (bool, error) {
	if k.erased || time.Since(k.began) >= registry.LedgerStaleness {
		return true, nil
	}
	l, err := r.ledger.Of(ctx, t.Name)
	return err != nil || len(l.Erasures) > 0, err
}
