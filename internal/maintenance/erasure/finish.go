package erasure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// finish carries out the pending erasure of a shard and books it. Every step may
// be done again, by anybody: rows that are gone are not found, a floor that stands
// is not lowered, and of several that book one succeeds; the others' answer is
// registry.ErrConflict.
func (x *Eraser) finish(ctx context.Context, t *ledger.ErasureRecord) error {
	p := t.Pending
	e, err := x.cfg.Registry.Erasure(ctx, t.Topic, p.Erasure)
	if errors.Is(err, registry.ErrNotFound) {
		if abandoned, lost := x.cfg.Registry.Abandon(ctx, t.Ref(), p.Erasure); lost != nil || abandoned {
			return lost
		}
	}
	if err != nil {
		return fmt.Errorf("erase: %s is pending in %s: %w", p.Erasure, schemas.PublicShardName(t.Topic, t.Month, t.Shard), err)
	}
	entry, err := x.cfg.Registry.Shard(ctx, t.Ref())
	if err != nil {
		return err
	}
	tail, has, err := x.tail(ctx, &entry)
	if err != nil {
		return err
	}
	if s := scopeOf(&e, &entry, tail, has); s != nil {
		if p.UpTo > 0 { // what sinks stored since it was counted is for the next pass, which counts it
			s.bound = min(s.bound, p.UpTo)
		}
		if err := x.floor(ctx, &e, s); err != nil {
			return err
		}
		x.crash("erase.after-floor")
		if err := x.remove(ctx, &e, s, p.Drop); err != nil {
			return err
		}
	}
	receipt := ledger.Receipt{Rows: p.Rows, Before: p.Before, Dropped: p.Drop, Diffs: p.Diffs, Seal: p.Seal, Unsealed: p.Unsealed}
	// What was derived from the rows that are gone, before the shard is booked.
	if entry.Gone() {
		receipt.Kept, err = x.removeSums(ctx, &e, &entry)
	} else {
		err = derived.Of(x.cfg.DB).Drop(ctx, entry.Ref(), x.cfg.Registry.DerivedDropper(entry.Topic))
	}
	if err != nil {
		return err
	}
	x.crash("erase.after-derived")
	receipt.RewrittenAt = time.Now().UTC()
	if old, again := t.Receipts[p.Erasure]; again { // its own rows are what was counted since: what came back was counted then
		if receipt.Before += old.Rows; p.Rows == 0 {
			receipt.Before = old.Before
		}
		receipt.Rows, receipt.Diffs = old.Rows+p.Rows, max(old.Diffs, p.Diffs)
		if receipt.Unsealed == "" {
			receipt.Seal, receipt.Unsealed = old.Seal, old.Unsealed
		}
	}
	brought := uint64(0)
	if has && tail.Pos == entry.SealedAt && entry.Fork == nil {
		brought = tail.ShardRows
	}
	x.crash("erase.before-book")
	return x.cfg.Registry.Book(ctx, t, receipt, brought, func(ctx context.Context) (uint64, error) {
		_, rows, err := x.cfg.DB.HeadRows(ctx, t.Ref())
		return rows, err
	})
}

// floor makes the head safe when the rows that carry it are all to go.
func (x *Eraser) floor(ctx context.Context, e *ledger.Erasure, s *scope) error {
	head, err := x.cfg.DB.Head(ctx, s.part)
	if err != nil || head == 0 {
		return err
	}
	c := covered(e, s, "e")
	c.SQL += fmt.Sprintf(" AND pos = %d", head)
	found, err := x.cfg.DB.Matching(ctx, e.Topic, []schemas.ShardRef{s.part}, c, false)
	if err != nil || len(found) == 0 {
		return err
	}
	there, err := x.cfg.DB.At(ctx, s.part, head)
	if err != nil || found[s.part.ID][0].Rows < there.Rows {
		return err
	}
	_, err = x.cfg.Registry.RaiseFloor(ctx, s.part, head)
	return err
}

// goneWithin bounds how long merges are asked for: one is enough unless another merge, begun before the
// delete, ends after it, which takes as long as that one does.
const goneWithin = busyWithin

// remove takes the rows out of every part that is read, and proves it.
func (x *Eraser) remove(ctx context.Context, e *ledger.Erasure, s *scope, drop bool) error {
	c := covered(e, s, "e")
	parts := []schemas.ShardRef{s.part}
	if drop {
		// What was to be dropped may have got other rows since, from a repair.
		var err error
		if drop, err = x.nothingElse(ctx, e, s, c); err != nil {
			return err
		}
	}
	if drop {
		if err := x.cfg.DB.DropShard(ctx, s.part); err != nil {
			return err
		}
		x.crash("erase.after-delete")
		return nil
	}
	for deadline := time.Now().Add(goneWithin); ; {
		seen, err := x.cfg.DB.Matching(ctx, e.Topic, parts, c, false)
		if err != nil {
			return err
		}
		if len(seen) > 0 {
			if err := x.cfg.DB.Hide(ctx, s.part, c); err != nil {
				return err
			}
		}
		x.crash("erase.after-delete")
		left, err := x.cfg.DB.Matching(ctx, e.Topic, parts, c, true)
		if err != nil || len(left) == 0 {
			return err
		}
		if err := x.rewrite(ctx, s.part); err != nil {
			return err
		}
		x.crash("erase.after-rewrite")
		if left, err = x.cfg.DB.Matching(ctx, e.Topic, parts, c, true); err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %s, after merges for %s", ErrNotGone, s.part, goneWithin)
		}
		if err := backoff.Sleep(ctx, busyPause); err != nil {
			return err
		}
	}
}

// nothingElse says that a shard has only rows that fulfil the condition.
func (x *Eraser) nothingElse(ctx context.Context, e *ledger.Erasure, s *scope, c tables.Condition) (bool, error) {
	found, err := x.cfg.DB.Matching(ctx, e.Topic, []schemas.ShardRef{s.part}, c, false)
	if err != nil {
		return false, err
	}
	_, rows, err := x.cfg.DB.HeadRows(ctx, s.part)
	for _, n := range found[s.part.ID] {
		rows -= min(rows, n.Rows)
	}
	return rows == 0, err
}

// rewrite merges a partition, once no other merge or delete is under way in it.
func (x *Eraser) rewrite(ctx context.Context, ref schemas.ShardRef) error {
	for deadline := time.Now().Add(busyWithin); ; {
		err := x.cfg.DB.Rewrite(ctx, ref)
		if !errors.Is(err, tables.ErrBusy) || time.Now().After(deadline) {
			return err
		}
		if err := backoff.Sleep(ctx, busyPause); err != nil {
			return err
		}
	}
}

// A full shard merges within half a minute; a small one in well below a tenth of a
// second.
const (
	busyWithin = 5 * time.Minute
	busyPause  = 100 * time.Millisecond
)
