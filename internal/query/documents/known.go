package documents

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/fronts/archived"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

const (
	// knownAge is how old a snapshot may be that a list goes by. An old one knows less as stored,
	// so DOCS is read further down, and nothing else changes. It is well below what erasures wait
	// for, so no list goes by less than they take for known.
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
	empty    seenEmpty
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
		k.empty = old.empty
	}
	var err error
	k.snapshot, err = archived.Take(ctx, r.js, r.reg, r.db, t)
	return k, err
}

// remember has later lists go by what one found: by its snapshot too, unless many documents
// were changed since.
func (r *Reader) remember(t *schemas.Topic, k *known, upTo map[int]uint64, empty seenEmpty, changed int) {
	next := &known{began: k.began, upTo: upTo, empty: empty}
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
