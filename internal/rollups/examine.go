package rollups

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// step is the next examination of a shard, and how many rows it has.
type step struct {
	derived.Step
	rows uint64
}

// examine looks for repeats in the next rows of some shards: in those of many of a lane with one
// statement, since each reads the identities of the whole lane. It returns up to where each
// shard was examined, but for those that failed, and whether there are more rows.
func (r *Rollups) examine(ctx context.Context, t *schemas.Topic, mine []schemas.ShardRef, d *derived.State) (examined map[schemas.ShardRef]uint64, more bool) {
	examined = map[schemas.ShardRef]uint64{}
	var steps []step
	rows := uint64(0)
	mine = slices.Clone(mine)
	slices.SortFunc(mine, func(a, b schemas.ShardRef) int { return cmp.Compare(a.ID.Lane(), b.ID.Lane()) })
	for _, ref := range mine {
		s, left, err := r.next(ctx, ref, d.Shards[ref])
		if err != nil {
			r.fault(ctx, ref, err)
			continue
		}
		if more = more || left; s.From == s.To {
			examined[ref] = s.To
			continue
		}
		if len(steps) > 0 && (rows+s.rows > r.cfg.BatchRows || steps[0].Ref.ID.Lane() != ref.ID.Lane()) {
			more = r.together(ctx, t, steps, examined) || more
			steps, rows = nil, 0
		}
		steps, rows = append(steps, s), rows+s.rows
	}
	return examined, r.together(ctx, t, steps, examined) || more
}

// together examines the rows of some steps of a lane with one statement, and notes up to where. more: a
// shard's head moved meanwhile, so the next round has work. Without steps, or once ctx ended, it asks nothing.
func (r *Rollups) together(ctx context.Context, t *schemas.Topic, steps []step, examined map[schemas.ShardRef]uint64) (more bool) {
	if len(steps) == 0 || ctx.Err() != nil {
		return false
	}
	all := make([]derived.Step, len(steps))
	for i, s := range steps {
		all[i] = s.Step
	}
	r.cfg.Crash("rollups.before-examine")
	bounded, cancel := context.WithTimeout(ctx, StatementTime)
	defer cancel()
	errs := derived.Of(r.cfg.DB).ExamineAll(bounded, t, all[0].Ref.ID.Lane(), all)
	r.cfg.Crash("rollups.after-examine")
	for i, s := range all {
		switch err := errs[i]; {
		case errors.Is(err, tables.ErrHeadMoved):
			more = true // it was dropped meanwhile: the next round reads where it is
		case err != nil:
			r.fault(ctx, s.Ref, err)
		default:
			examined[s.Ref] = s.To
			r.cfg.Hooks.Examined(s.Ref, s.To)
		}
	}
	return more
}

// maxPositions bounds the positions that one step reads over: 2 MiB to list.
const maxPositions = 100_000

// next is the next step of a shard: at most BatchRows rows, and never less than one position.
// more: it has rows after it. What was examined in other rows than it has is dropped first.
func (r *Rollups) next(ctx context.Context, ref schemas.ShardRef, d derived.Progress) (s step, more bool, err error) {
	if d.Doubted {
		if err := derived.Of(r.cfg.DB).DropDoubted(ctx, ref, r.cfg.Registry.DerivedDropper(ref.Topic)); err != nil {
			return s, false, err
		}
		r.cfg.Hooks.Dropped(ref, "it has other rows, or fewer marks, than when it was looked for repeats")
		d.Examined, d.Epoch = 0, 0
	}
	s.Step = derived.Step{Ref: ref, Epoch: d.Epoch, From: d.Examined, To: d.Stored.Head}
	if s.From == s.To {
		return s, false, nil
	}
	if s.rows = d.Stored.Rows; s.From == 0 && s.rows <= r.cfg.BatchRows {
		return s, false, nil
	}
	ends, err := r.cfg.DB.RowsByPosition(ctx, ref, s.From, maxPositions)
	if err != nil {
		return s, false, err
	}
	s.To, s.rows = s.From, 0
	for i, e := range ends {
		if i > 0 && s.rows+e.Rows > r.cfg.BatchRows {
			return s, true, nil
		}
		s.To, s.rows = e.Pos, s.rows+e.Rows
	}
	return s, len(ends) == maxPositions, nil
}
