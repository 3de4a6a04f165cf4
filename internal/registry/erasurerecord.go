package registry

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// ErasureRecord reads a shard's erasure record; one that was never written is empty.
func (r *Registry) ErasureRecord(ctx context.Context, ref schemas.ShardRef) (ledger.ErasureRecord, error) {
	t := ledger.ErasureRecord{Topic: ref.Topic, Month: ref.Month, Shard: ref.ID}
	rev, err := r.get(ctx, t.Key(), &t)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	t.Rev = rev
	return t, err
}

// ErasureRecords reads all erasure records of a topic: of the shards that erasures touched.
func (r *Registry) ErasureRecords(ctx context.Context, topic string) (map[schemas.Shard]ledger.ErasureRecord, error) {
	out := map[schemas.Shard]ledger.ErasureRecord{}
	tallies, err := listNewest[ledger.ErasureRecord](ctx, r, schemas.ErasureRecordKeys(topic))
	for _, t := range tallies {
		out[t.Shard] = t
	}
	return out, err
}

// Taken lists the messages of EVENTS of which purges took what SHARDS had, of every topic; see streams.Taken.
func (r *Registry) Taken(ctx context.Context) (all []checkpoint.Silent, err error) {
	topics, err := r.Skipping(func(error) {}).Topics(ctx)
	if err != nil {
		return nil, err
	}
	for i := range topics {
		tallies, err := r.ErasureRecords(ctx, topics[i].Name)
		if err != nil {
			return nil, err
		}
		for _, t := range tallies {
			all = append(all, t.Silent...)
		}
	}
	return all, nil
}

// Begin writes a pending erasure into a shard's erasure record. ErrConflict: another
// process changed the erasure record since it was read; read it again, and count again.
func (r *Registry) Begin(ctx context.Context, t *ledger.ErasureRecord, p ledger.Pending) error {
	next := *t
	next.Pending = &p
	c := &change{key: t.Key(), rev: t.Rev, v: &next}
	if err := r.enter(ctx, []string{t.Topic}, c); err != nil {
		return err
	}
	next.Rev = c.rev
	*t = next
	return nil
}

// Book ends the pending erasure of an erasure record, whose rows are gone: they join those
// that are, and the shard's entry has its rows less. count says how many rows the
// shard has now, which the entry states exactly of a shard that was closed meanwhile: it is asked after the
// entry was read, and again when the entry changed meanwhile, for who closed the
// shard may have counted rows that count did not see, or the other way round. Of one that was closed before
// its frames tell, which brought so many rows, 0 where that is not known: a ClickHouse from an older copy lacks rows that a sink has yet
// to store again.
func (r *Registry) Book(ctx context.Context, t *ledger.ErasureRecord, receipt ledger.Receipt, brought uint64, count func(context.Context) (uint64, error)) error {
	id := t.Pending.Erasure
	next := t.Booked()
	for {
		s, err := r.Shard(ctx, t.Ref())
		if err != nil {
			return err
		}
		if receipt.After, err = count(ctx); err != nil {
			return err
		}
		next.Receipts[id] = receipt
		switch gone := ledger.SumCuts(next.Gone, math.MaxUint64); {
		case s.Status == Closed && !t.Pending.Closed:
			s.Rows = receipt.After
		case s.Status == Closed && brought >= gone && brought > 0:
			s.Rows = brought - gone
		default:
			s.Rows -= min(s.Rows, t.Pending.Rows)
		}
		c := &change{key: t.Key(), rev: t.Rev, v: &next}
		err = r.commit(ctx, c, &change{key: s.key(), rev: s.rev, v: &s})
		if err == nil {
			next.Rev = c.rev
			*t = next
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
		now, err := r.ErasureRecord(ctx, t.Ref())
		if err != nil {
			return err
		}
		if now.Rev != t.Rev {
			return fmt.Errorf("%w: %s", ErrConflict, t.Key())
		}
	}
}

// AmendErasureRecord changes an erasure record by compare-and-set until f, on a fresh reading, sees
// nothing to change.
func (r *Registry) AmendErasureRecord(ctx context.Context, ref schemas.ShardRef, f func(*ledger.ErasureRecord) (changed bool)) (ledger.ErasureRecord, error) {
	return amend(ctx, r, func() (ledger.ErasureRecord, error) { return r.ErasureRecord(ctx, ref) }, f)
}
