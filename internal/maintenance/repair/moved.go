package repair

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/reconcile"
	"github.com/almanac-events/almanac/internal/tables"
)

// A row that stands at a position whose frame did not bring it may be a person's own. It is a surplus where the same row, in
// every column, stands at another position of the shard that has exactly what its frame brought: then it was moved or
// copied there, and nothing goes with it. Rows that lack at their own position are inserted first.

// surplus adds what drops the rows of a stretch that are too many. Of rows, twins stand elsewhere in the shard, and
// as many as lack are inserted there before. It reports whether that may be all of them.
func (s *shardPlan) surplus(d reconcile.Stretch, frames []link, twins, lack uint64) (a Action, ok bool) {
	extra := d.Distinct - min(d.Distinct, d.Want)
	if extra == 0 || !d.Summed || twins+lack < extra {
		return a, false
	}
	return Action{Do: DropMoved, From: d.Lo + 1, To: d.Hi, lo: d.Lo, hi: d.Hi, Rows: extra, frames: frames, chain: s.chain, Source: "ClickHouse",
		Detail: fmt.Sprintf("%d rows, the frames brought %d: others stand at their own positions too", d.Have, d.Want)}, true
}

// lacking is how many rows are missing in stretches.
func lacking(differ []reconcile.Stretch) (n uint64) {
	for _, d := range differ {
		n += d.Want - min(d.Want, d.Have)
	}
	return n
}

// dropMoved removes the rows of a stretch that are proven to be a surplus.
func (r *Repairer) dropMoved(ctx context.Context, a *Action) error {
	s, err := r.strangers(ctx, a)
	if err != nil || len(s.rows) == 0 {
		return err
	}
	twins, err := r.db.Twins(ctx, a.ref, list(s.rows))
	if err != nil {
		return err
	}
	groups, err := r.db.Groups(ctx, a.ref)
	if err != nil {
		return err
	}
	record, err := r.reg.ErasureRecord(ctx, a.ref)
	if err != nil {
		return err
	}
	all, _ := reconcile.Compare(a.chain.frames(), groups, record.Cuts())
	rows := slices.DeleteFunc(slices.Clone(s.rows), func(k tables.RowKey) bool {
		return !slices.ContainsFunc(twins[k], func(pos uint64) bool { return exact(all, pos) })
	})
	if err := r.hideRows(ctx, a, rows, s.head); err != nil {
		return err
	}
	if left := len(s.rows) - len(rows); left > 0 {
		return fmt.Errorf("%d of %d rows that no frame brought there are at no other position of the shard, and may be a person's own: look at them, and delete them in ClickHouse", left, len(s.rows))
	}
	return nil
}

// exact reports whether a position has what its frame brought, by the sum of ids.
func exact(all []reconcile.Stretch, pos uint64) bool {
	return slices.ContainsFunc(all, func(s reconcile.Stretch) bool { return s.Lo < pos && pos <= s.Hi && s.Summed && s.Same() })
}
