package erasure

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// waitStored waits until everything that was accepted before the erasure was entered
// is stored, and notes how far it covers the shards that go on growing.
func (x *Eraser) waitStored(ctx context.Context, e ledger.Erasure) (ledger.Erasure, error) {
	// Who held an older ledger has read this entry then. The clock that wrote
	// CreatedAt may have been another's, ahead of this one.
	if err := backoff.Sleep(ctx, min(registry.LedgerStaleness, time.Until(e.CreatedAt.Add(registry.LedgerStaleness)))); err != nil {
		return e, err
	}
	e, err := x.cfg.Registry.Erasure(ctx, e.Topic, e.ID) // its fence may have been raised since
	if err != nil || e.State != ledger.Waiting {
		return e, err
	}
	fence := e.UpTo()
	if _, _, err := x.allStored(ctx, &e, nil); err != nil {
		return e, err
	}
	if e, err = x.cfg.Registry.Erasure(ctx, e.Topic, e.ID); err != nil { // with what was pinned meanwhile
		return e, err
	}
	bounds, err := x.bounds(ctx, &e)
	if err != nil {
		return e, err
	}
	raised := false
	e, err = x.cfg.Registry.AmendErasure(ctx, e.Topic, e.ID, func(now *ledger.Erasure) bool {
		if raised = now.State == ledger.Waiting && now.UpTo() != fence; raised || now.State != ledger.Waiting {
			return false // of several processes the first was faster: its bounds hold
		}
		maps.Copy(bounds, now.Bounds)
		now.State, now.StoredAt, now.Bounds, now.Tails = ledger.Erasing, time.Now().UTC(), bounds, nil
		return true
	})
	if err != nil || !raised {
		return e, err
	}
	return x.waitStored(ctx, e)
}

// allStored waits until everything up to an erasure's fence is stored, by the frames up to tails as WaitStoredUpTo takes and returns
// them. waited: not all was at first.
func (x *Eraser) allStored(ctx context.Context, e *ledger.Erasure, tails []streams.Tail) (waited bool, ends []streams.Tail, err error) {
	told := time.Time{}
	pending, ends, err := x.cfg.Reader.WaitStoredUpTo(ctx, []string{e.Topic}, e.UpTo(), tails, x.cfg.Within, func(pending uint64) {
		waited = waited || pending > 0
		if time.Since(told) >= waitStep {
			told = time.Now()
			x.progress(Progress{State: ledger.Waiting, Pending: pending})
		}
	})
	if err == nil && pending > 0 {
		err = fmt.Errorf("%w: %d events after %s; once routers and sinks have stored them, `almanac erase resume %s` goes on", ErrNotStored, pending, x.cfg.Within, e.ID)
	}
	return waited, ends, err
}

// growing are the last positions of a topic's shards that may still grow.
func (x *Eraser) growing(ctx context.Context, topic string) (map[schemas.Shard]uint64, error) {
	shards, err := x.cfg.Registry.Shards(ctx, topic, 0)
	if err != nil {
		return nil, err
	}
	tails, err := streams.Tails(ctx, x.js, topic, nil)
	if err != nil {
		return nil, err
	}
	out := map[schemas.Shard]uint64{}
	for i := range shards {
		if t, has := tails[shards[i].ID]; has && shards[i].Status == registry.Active {
			out[shards[i].ID] = t.Pos
		}
	}
	return out, nil
}

// waitStep is how often progress is told.
const waitStep = time.Second

// outlive waits until no reader goes by checkpoints or heads from before everything
// covered was stored. Until then one may look for it in the streams, or have it from
// there: what is purged would be missed with its company, what is forgotten shown.
func outlive(ctx context.Context, e *ledger.Erasure) error {
	return backoff.Sleep(ctx, min(query.HeadStaleness, time.Until(e.StoredAt.Add(query.HeadStaleness))))
}
