package erasure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// atOnce is how many shards are erased side by side: each waits for a disk more
// than for a processor.
const atOnce = 4

// maxSweeps bounds the passes over a topic: the first erases, the second finds
// nothing; more come only while rows are added that it covers.
const maxSweeps = 5

// sweep erases shard after shard until a pass over all of them finds none with
// rows that match, hidden ones included. The pass that ends an erasure begins once all is stored that it means: sinks fill a
// ClickHouse that was restored from an older copy meanwhile with that too.
func (x *Eraser) sweep(ctx context.Context, e *ledger.Erasure) error {
	stored := e.State == ledger.Erased // what it means is not stored any more
	var tails []streams.Tail           // of the first wait, for all
	for range maxSweeps {
		if err := x.finishAll(ctx, e.Topic); err != nil {
			return err
		}
		scopes, found, err := x.counted(ctx, e, true)
		if err != nil || len(found) == 0 && stored {
			return err
		}
		seals, err := x.seals(ctx, e)
		if err != nil {
			return err
		}
		var done atomic.Int64
		x.progress(Progress{State: ledger.Erasing, Shards: len(found)})
		g, gctx := fanout.WithContext(ctx)
		g.SetLimit(atOnce)
		for id := range found {
			g.Go(func() error {
				if err := x.shard(gctx, e, scopes[id], &seals); err != nil {
					return err
				}
				x.progress(Progress{State: ledger.Erasing, Done: int(done.Add(1)), Shards: len(found)})
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for waited := e.State != ledger.Erased; waited; { // what was stored before a wait may not be after it
			if waited, tails, err = x.allStored(ctx, e, tails); err != nil {
				return err
			}
		}
		stored = true
	}
	return fmt.Errorf("%w: topic %q has rows of erasure %s after %d passes", ErrNotGone, e.Topic, e.ID, maxSweeps)
}

// counted is the rows that match in all shards that an erasure reaches, as matching counts them.
func (x *Eraser) counted(ctx context.Context, e *ledger.Erasure, physical bool) (scopes map[schemas.Shard]*scope, found map[schemas.Shard][]tables.PosRows, err error) {
	if scopes, err = x.scopes(ctx, e); err == nil {
		found, err = x.matching(ctx, e, scopes, physical)
	}
	return scopes, found, err
}

// matching counts what an erasure means in ClickHouse, by shard and position.
func (x *Eraser) matching(ctx context.Context, e *ledger.Erasure, scopes map[schemas.Shard]*scope, physical bool) (map[schemas.Shard][]tables.PosRows, error) {
	var whole []schemas.ShardRef
	var bounded []*scope
	for _, s := range scopes {
		if s.whole() {
			whole = append(whole, s.part)
		} else {
			bounded = append(bounded, s)
		}
	}
	cond, params := e.Match("e")
	out, err := x.cfg.DB.Matching(ctx, e.Topic, whole, tables.Condition{SQL: cond, Params: params}, physical)
	if err != nil {
		return nil, err
	}
	for _, s := range bounded {
		more, err := x.cfg.DB.Matching(ctx, e.Topic, []schemas.ShardRef{s.part}, covered(e, s, "e"), physical)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, more)
	}
	return out, nil
}

// finishAll carries out whatever is pending in the topic's shards, whosever it is.
func (x *Eraser) finishAll(ctx context.Context, topic string) error {
	tallies, err := x.cfg.Registry.ErasureRecords(ctx, topic)
	if err != nil {
		return err
	}
	for _, t := range tallies {
		if t.Pending == nil {
			continue
		}
		if err := x.finish(ctx, &t); err != nil && !errors.Is(err, registry.ErrConflict) {
			return err
		}
	}
	return nil
}

// shard erases in one shard: counts, writes down what will go, and takes it.
func (x *Eraser) shard(ctx context.Context, e *ledger.Erasure, s *scope, seals *sealed) error {
	return x.take(ctx, e, s.part, "erase.after-intent", func(t *ledger.ErasureRecord) (*ledger.Pending, error) {
		if t.Clearing(time.Now()) { // Begin conflicts with one that comes later
			if err := backoff.Sleep(ctx, waitStep); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%w: fields of %s are being cleared", registry.ErrConflict, s.part)
		}
		x.crash("erase.before-intent")
		return x.intent(ctx, e, s, t, seals)
	})
}

// take takes from one shard what intent counts there; nil is nothing. The intent is written into
// the erasure record before anything goes, and crash names the moment after that. After a conflict the
// erasure record is read again, and counted again.
func (x *Eraser) take(ctx context.Context, e *ledger.Erasure, ref schemas.ShardRef, crash string, intent func(*ledger.ErasureRecord) (*ledger.Pending, error)) error {
	for {
		t, err := x.cfg.Registry.ErasureRecord(ctx, ref)
		if err != nil {
			return err
		}
		if t.Pending == nil {
			p, err := intent(&t)
			if err == nil && p != nil {
				err = x.cfg.Registry.Begin(ctx, &t, *p)
			}
			if errors.Is(err, registry.ErrConflict) {
				continue
			}
			if err != nil || p == nil {
				return err
			}
			x.crash(crash)
		}
		mine := t.Pending.Erasure == e.ID
		err = x.finish(ctx, &t)
		if errors.Is(err, registry.ErrConflict) { // another booked it
			if err := backoff.Sleep(ctx, busyPause); err != nil {
				return err
			}
			continue
		}
		if err != nil || mine {
			return err
		}
	}
}

// intent counts what the erasure will take from the shard; nil when there is
// nothing. Rows that an earlier erasure had counted, this one or another, are not
// counted again: they came back with an older copy of ClickHouse. Nor are rows that sinks store from now on: they lie above what
// is stored now, and the next pass counts them.
func (x *Eraser) intent(ctx context.Context, e *ledger.Erasure, s *scope, t *ledger.ErasureRecord, seals *sealed) (*ledger.Pending, error) {
	parts := []schemas.ShardRef{s.part}
	there, err := x.cfg.DB.Matching(ctx, e.Topic, parts, covered(e, s, "e"), true)
	if err != nil || len(there) == 0 {
		return nil, err
	}
	head, rows, err := x.cfg.DB.HeadRows(ctx, s.part)
	if err != nil {
		return nil, err
	}
	hidden := there[s.part.ID] // rows that a delete hid may lie above the head
	p := &ledger.Pending{Erasure: e.ID, Before: rows, UpTo: max(head, hidden[len(hidden)-1].Pos), At: time.Now().UTC()}
	c := covered(e, &scope{part: s.part, bound: min(s.bound, p.UpTo)}, "e")
	all, err := x.cfg.DB.Matching(ctx, e.Topic, parts, c, false)
	if err != nil {
		return nil, err
	}
	var matched uint64
	for _, n := range all[s.part.ID] {
		matched += n.Rows
	}
	// Of an erasure that has ended no row is stored any more: all that is there came back.
	if _, again := t.Receipts[e.ID]; !again || e.State != ledger.Erased {
		if err := x.except(ctx, &c, t, s); err != nil {
			return nil, err
		}
		if len(t.Receipts) > 0 {
			if all, err = x.cfg.DB.Matching(ctx, e.Topic, parts, c, false); err != nil {
				return nil, err
			}
		}
		for _, n := range all[s.part.ID] {
			p.Cuts = append(p.Cuts, ledger.Cut{Pos: n.Pos, Rows: n.Rows, IDs: n.IDs})
			p.Rows += n.Rows
		}
		p.Cuts = ledger.AddCuts(p.Cuts, nil)
	}
	entry, err := x.cfg.Registry.Shard(ctx, s.part)
	if err != nil {
		return nil, err
	}
	p.Closed = entry.Status == registry.Closed
	// Where ClickHouse lacks rows of others a sink may be storing them: a partition goes only where none is missing.
	p.Drop = p.Closed && s.whole() && matched == rows && rows > 0 && rows >= entry.Rows
	return p, x.compare(ctx, seals, &entry, t, p)
}

// except leaves out of a condition what erasures with a receipt in the shard, this one too, counted there. Those that
// were forgotten are not known any more.
func (x *Eraser) except(ctx context.Context, c *tables.Condition, t *ledger.ErasureRecord, s *scope) error {
	if len(t.Receipts) == 0 {
		return nil
	}
	all, err := x.cfg.Registry.Ledger(ctx, s.part.Topic)
	if err != nil {
		return err
	}
	entry, err := x.cfg.Registry.Shard(ctx, s.part)
	if err != nil {
		return err
	}
	tail, has, err := x.tail(ctx, &entry)
	if err != nil {
		return err
	}
	upTo := map[uint64]ledger.Cover{}
	for i := range all {
		if _, ok := t.Receipts[all[i].ID]; !ok {
			continue
		}
		if before := scopeOf(&all[i], &entry, tail, has); before != nil {
			counted := min(before.bound, t.CountedUpTo(all[i].ID))
			upTo[counted] = append(upTo[counted], all[i])
		}
	}
	if len(upTo) == 0 {
		return nil
	}
	var was []string
	for i, bound := range slices.Sorted(maps.Keys(upTo)) {
		cond, params := upTo[bound].Means(fmt.Sprintf("o%d_", i))
		was = append(was, fmt.Sprintf("(pos <= %d AND %s)", bound, cond))
		maps.Copy(c.Params, params)
	}
	c.SQL += " AND NOT " + ledger.AnyOf(was)
	return nil
}
