package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// ForgetErasure takes an erasure that has ended out of the ledger, and joins its
// receipts with those of others that were forgotten. How many rows are gone stays
// in the erasure records; who was named, and what went from which shard, does not.
// ErrConflict when it has not ended, or is being repeated in a shard.
//
// The entry must no longer be needed: it is what keeps its events from coming back
// out of the streams. Called again after a crash, for any erasure of the topic, it
// joins what was left.
func (r *Registry) ForgetErasure(ctx context.Context, topic, id string) error {
	e, err := r.Erasure(ctx, topic, id)
	if err != nil {
		return err
	}
	tallies, err := r.ErasureRecords(ctx, topic)
	if err != nil {
		return err
	}
	for _, t := range tallies {
		if t.Pending != nil && t.Pending.Erasure == id {
			return fmt.Errorf("%w: erasure %s is under way in %s", ErrConflict, id, schemas.PublicShardName(topic, t.Month, t.Shard))
		}
	}
	if e.State != ledger.Erased {
		return fmt.Errorf("%w: erasure %s is %s", ErrConflict, id, e.State)
	}
	if err := r.forgetCopied(ctx, e.Key()); err != nil {
		return err
	}
	return r.joinReceipts(ctx, topic)
}

// Abandon ends what is pending of an erasure that was forgotten while a shard was counted for it once more, of rows that came back.
// Its entry is read before a row goes, so none went; one that counts new rows stays. abandoned is false where it does.
func (r *Registry) Abandon(ctx context.Context, ref schemas.ShardRef, id string) (abandoned bool, err error) {
	if _, err := r.Erasure(ctx, ref.Topic, id); !errors.Is(err, ErrNotFound) {
		return false, err
	}
	t, err := r.AmendErasureRecord(ctx, ref, func(t *ledger.ErasureRecord) bool {
		if t.Pending == nil || t.Pending.Erasure != id || t.Pending.Rows > 0 {
			return false
		}
		t.Pending = nil
		return true
	})
	return err == nil && (t.Pending == nil || t.Pending.Erasure != id), err
}

// forgetCopied takes an entry out of the bucket, and then leaves a tombstone in its copy: an
// absence would look as if the copy was lost.
func (r *Registry) forgetCopied(ctx context.Context, key string) error {
	copies, err := r.copiesOf(ctx, []string{key})
	if err != nil {
		return err
	}
	entry, err := r.lastOf(ctx, schemas.KVStream, schemas.KVSubject(key))
	if err != nil {
		return fmt.Errorf("registry: reading %s: %w", key, err)
	}
	if err := r.forget(ctx, key); err != nil {
		return err
	}
	copied := copies[key]
	return r.copyOne(ctx, key, written{count: max(entry.count, copied.count) + 1}, copied.seq)
}

// joinReceipts joins the receipts of erasures that the ledger no longer has.
func (r *Registry) joinReceipts(ctx context.Context, topic string) error {
	// The erasure records first: whatever has a receipt then was entered before.
	tallies, err := r.ErasureRecords(ctx, topic)
	if err != nil {
		return err
	}
	l, err := r.Ledger(ctx, topic)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for i := range l {
		there[l[i].ID] = true
	}
	for _, t := range tallies {
		var orphans []string
		for id := range t.Receipts {
			if !there[id] {
				orphans = append(orphans, id)
			}
		}
		if len(orphans) == 0 {
			continue
		}
		if _, err := r.AmendErasureRecord(ctx, schemas.ShardRef{Topic: topic, Month: t.Month, ID: t.Shard}, func(t *ledger.ErasureRecord) bool { return t.Join(orphans) }); err != nil {
			return err
		}
	}
	return nil
}
