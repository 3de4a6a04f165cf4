package erasure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// sumColumns are the columns of events that the sums of a meter have too.
var sumColumns = []string{schemas.ColType, "provider", "space", schemas.ColUserID}

// reaches reports whether the sums of a shard tell the events of an erasure from others: they
// know meters, providers, spaces and customers, and no time within the shard's.
func reaches(e *ledger.Erasure, s *registry.Shard) bool {
	for _, c := range e.Columns() {
		if !slices.Contains(sumColumns, c) {
			return false
		}
	}
	return e.From <= s.MinTs && s.MaxTs <= e.To
}

// outlived are the shards whose rows retention dropped and whose sums may stand for events of
// an erasure.
type outlived struct {
	// reached are those whose sums tell them from others.
	reached []registry.Shard
	// kept are those whose sums do not.
	kept []registry.Shard
}

// outlived looks for shards that retention dropped before an erasure looked for rows in them.
func (x *Eraser) outlived(ctx context.Context, e *ledger.Erasure) (o outlived, err error) {
	topic, err := x.cfg.Registry.Topic(ctx, e.Topic)
	if err != nil || !topic.HasSums() {
		return o, err
	}
	shards, err := x.cfg.Registry.Shards(ctx, e.Topic, 0)
	if err != nil {
		return o, err
	}
	shards = slices.DeleteFunc(shards, func(s registry.Shard) bool {
		later := e.State == ledger.Erased && s.DroppedAt.After(e.ErasedAt) // its rows were erased
		return !s.Gone() || s.DroppedRows == 0 || later || !s.Overlaps(e.From, e.To)
	})
	if len(shards) == 0 {
		return o, nil
	}
	summed, err := derived.Of(x.cfg.DB).Summed(ctx, e.Topic)
	if err != nil {
		return o, err
	}
	tails, err := streams.Tails(ctx, x.js, e.Topic, nil)
	if err != nil {
		return o, err
	}
	tallies, err := x.cfg.Registry.ErasureRecords(ctx, e.Topic)
	if err != nil {
		return o, err
	}
	for _, s := range shards {
		last, has := tails[s.ID]
		upTo := bound(e, &s, end{last, s.Ref().Subject()}, has)
		receipt, taken := tallies[s.ID].Receipts[e.ID]
		switch {
		case summed[s.ID] == 0 || upTo == 0:
		case reaches(e, &s) && upTo >= s.SealedAt:
			o.reached = append(o.reached, s)
		case !taken || receipt.Kept:
			o.kept = append(o.kept, s)
		}
	}
	return o, nil
}

// months names the months of shards.
func months(shards []registry.Shard) string {
	var out []string
	for i := range shards {
		out = append(out, shards[i].Month.String())
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// checkSums refuses an erasure that could not reach sums which may stand for its events.
func (x *Eraser) checkSums(ctx context.Context, e *ledger.Erasure) (outlived, error) {
	now := *e // all that was dropped was accepted before
	now.Fence, now.FenceTime = math.MaxUint64, 0
	o, err := x.outlived(ctx, &now)
	if err == nil && len(o.kept) > 0 {
		err = fmt.Errorf("%w: retention dropped rows of %s, and the sums that stay tell meters, providers, spaces and customers apart, and no time within a month. Name these alone, over all of such a month; or leave these months out with --from and --to",
			ErrRequest, months(o.kept))
	}
	return o, err
}

// matchingSums counts what an erasure means in sums of dropped shards.
func (x *Eraser) matchingSums(ctx context.Context, e *ledger.Erasure, shards []registry.Shard) (map[schemas.Shard]uint64, error) {
	refs := make([]schemas.ShardRef, len(shards))
	for i := range shards {
		refs[i] = shards[i].Ref()
	}
	cond, params := e.Names("e")
	return derived.Of(x.cfg.DB).SumsMatching(ctx, e.Topic, refs, tables.Condition{SQL: cond, Params: params})
}

// sums erases in the sums of dropped shards, one after the other, until none has any.
func (x *Eraser) sums(ctx context.Context, e *ledger.Erasure) error {
	for range maxSweeps {
		o, err := x.outlived(ctx, e)
		if err != nil {
			return err
		}
		found, err := x.matchingSums(ctx, e, o.reached)
		if err != nil || len(found) == 0 {
			return err
		}
		for i := range o.reached {
			if s := &o.reached[i]; found[s.ID] > 0 {
				if err := x.sumsOf(ctx, e, s); err != nil {
					return err
				}
			}
		}
	}
	return fmt.Errorf("%w: sums of topic %q have diffs of erasure %s after %d passes", ErrNotGone, e.Topic, e.ID, maxSweeps)
}

// sumsOf erases in the sums of one shard: counts, writes down what will go, and takes it.
func (x *Eraser) sumsOf(ctx context.Context, e *ledger.Erasure, s *registry.Shard) error {
	return x.take(ctx, e, s.Ref(), "erase.after-sums-intent", func(*ledger.ErasureRecord) (*ledger.Pending, error) {
		found, err := x.matchingSums(ctx, e, []registry.Shard{*s})
		if err != nil || found[s.ID] == 0 {
			return nil, err
		}
		x.crash("erase.before-sums-intent")
		return &ledger.Pending{Erasure: e.ID, Diffs: found[s.ID], At: time.Now().UTC()}, nil
	})
}

// maxDeletions bounds the deletions in sums: one is enough unless more diffs are summed beside it.
const maxDeletions = 5

// removeSums takes an erasure's diffs out of the sums of a dropped shard, and proves it. kept:
// the sums do not tell them from others.
func (x *Eraser) removeSums(ctx context.Context, e *ledger.Erasure, s *registry.Shard) (kept bool, err error) {
	topic, err := x.cfg.Registry.Topic(ctx, e.Topic)
	if err != nil || !topic.HasSums() || s.DroppedRows == 0 {
		return false, err
	}
	if !reaches(e, s) {
		return true, nil
	}
	for range maxDeletions {
		found, err := x.matchingSums(ctx, e, []registry.Shard{*s})
		if err != nil || found[s.ID] == 0 {
			return false, err
		}
		cond, params := e.Names("e")
		if err := derived.Of(x.cfg.DB).EraseSums(ctx, s.Ref(), tables.Condition{SQL: cond, Params: params}); err != nil {
			return false, err
		}
		x.crash("erase.after-sums")
	}
	return false, fmt.Errorf("%w: sums of %s, after %d deletions", ErrNotGone, s.Ref(), maxDeletions)
}

// showSums adds to a proof what sums of dropped shards have.
func (x *Eraser) showSums(ctx context.Context, e *ledger.Erasure, p *Proof) error {
	o, err := x.outlived(ctx, e)
	if err != nil {
		return err
	}
	found, err := x.matchingSums(ctx, e, o.reached)
	for _, n := range found {
		p.MatchingDiffs += n
	}
	p.KeptSums = months(o.kept)
	return err
}
