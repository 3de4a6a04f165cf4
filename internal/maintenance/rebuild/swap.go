package rebuild

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// freezeTime bounds how long sinks wait: what is left after the passes takes
// seconds. openTime bounds opening the table again when it was not enough.
const (
	freezeTime = 10 * time.Minute
	openTime   = 30 * time.Second
)

// swap freezes the old table, brings the rest over, compares, and exchanges the two.
// When that cannot be the old table is opened again.
func (r *rebuild) swap(ctx context.Context) (err error) {
	frozen, cancel := context.WithTimeout(ctx, freezeTime)
	defer cancel()
	if err := r.cfg.DB.Freeze(frozen, r.topic.Name); err != nil {
		return r.open(ctx, err)
	}
	if err := r.crash("rebuild.after-freeze"); err != nil {
		return err
	}
	if err := r.complete(frozen); err != nil {
		if errors.As(err, new(crashed)) {
			return err
		}
		return r.open(ctx, err)
	}
	if err := r.crash("rebuild.before-swap"); err != nil {
		return err
	}
	// An erasure entered from here on waits registry.LedgerStaleness before it acts.
	if err := r.quiet(frozen); err != nil {
		return r.open(ctx, err)
	}
	if !maps.EqualFunc(r.cleared, r.compared, time.Time.Equal) {
		return r.open(ctx, fmt.Errorf("%w: retention cleared fields of topic %q while its tables were compared; run this again", ErrBusy, r.topic.Name))
	}
	if err := ctx.Err(); err != nil {
		return r.open(ctx, err)
	}
	if err := r.exchange(ctx); err != nil {
		return err
	}
	return r.crash("rebuild.after-swap")
}

// exchange gives the tables each other's name. It does not end with the context,
// and without an answer it does not open the old table: the server may be about to
// exchange the two, and a row that was stored in the old one meanwhile would lie
// behind the fresh head.
func (r *rebuild) exchange(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTime)
	defer cancel()
	old, fresh, err := r.states(last)
	if err != nil {
		return r.open(ctx, err)
	}
	if !old.Frozen || fresh.Frozen {
		return fmt.Errorf("rebuild: %w: the tables of %s were exchanged or opened by another; does another rebuild run? Look with --dry-run", ErrDiffers, r.topic.Name)
	}
	err = r.cfg.DB.Exchange(last, r.topic.Name, r.fresh)
	if err == nil {
		return nil
	}
	if errors.As(err, new(*tables.Error)) {
		return r.open(ctx, err)
	}
	if old, fresh, stateErr := r.states(last); stateErr != nil || old.Frozen || !fresh.Frozen {
		return errors.Join(fmt.Errorf("%w; whether the tables were exchanged is not known: run it again to end it", err), stateErr)
	}
	return nil // only the answer was lost
}

// crashed marks the end that a test makes.
type crashed struct{ error }

// Unwrap implements errors.
func (c crashed) Unwrap() error { return c.error }

// Crashed makes an error one that leaves everything as it is, for Config.Crash.
func Crashed(err error) error { return crashed{err} }

// open lets the old table take inserts again after a failure.
func (r *rebuild) open(ctx context.Context, cause error) error {
	if errors.As(cause, new(crashed)) {
		return cause
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTime)
	defer cancel()
	if err := r.cfg.DB.Thaw(last, r.topic.Name); err != nil {
		return errors.Join(cause, fmt.Errorf("the table still takes no inserts: %w; run it again, or with --abort", err))
	}
	return cause
}

// complete brings over what the frozen table has above the fresh heads, and compares
// every shard; one that differs, because rows were erased or cleared meanwhile, is
// copied again, once.
func (r *rebuild) complete(ctx context.Context) error {
	if err := r.quiet(ctx); err != nil {
		return err
	}
	for {
		moved, err := r.pass(ctx)
		if err != nil {
			return err
		}
		if moved == 0 {
			break
		}
	}
	old, err := r.counts(ctx)
	if err != nil {
		return err
	}
	fresh, err := r.cfg.DB.Counts(ctx, r.fresh)
	if err != nil {
		return err
	}
	entries, err := r.anonymised(ctx)
	if err != nil {
		return err
	}
	r.compared = clearedAt(slices.Collect(maps.Values(entries)))
	r.res.Rows = 0
	for id, c := range old {
		stale := !entries[id].AnonymisedAt.Equal(r.copied[id]) && !entries[id].AnonymisedAt.IsZero()
		if same, err := r.same(ctx, id, c, fresh[id]); err != nil {
			return err
		} else if !same || stale {
			if fresh[id], err = r.again(ctx, schemas.ShardRef{Topic: r.topic.Name, Month: c.Month, ID: id}); err != nil {
				return err
			}
			if fresh[id] != c {
				return fmt.Errorf("rebuild: %w: %s has %d rows with %d ids up to position %d, the old table %d with %d up to %d; nothing was changed, run `almanac verify %s`", ErrDiffers,
					schemas.PublicShardName(r.topic.Name, c.Month, id), fresh[id].Rows, fresh[id].Distinct, fresh[id].Head, c.Rows, c.Distinct, c.Head, r.topic.Name)
			}
		}
		r.res.Rows += fresh[id].Rows
	}
	for id, c := range fresh {
		if _, ok := old[id]; ok {
			continue
		}
		record, err := r.cfg.Registry.ErasureRecord(ctx, schemas.ShardRef{Topic: r.topic.Name, Month: c.Month, ID: id})
		if err != nil {
			return err
		}
		// An erasure that takes all rows raises the floor first, of a shard that is not closed too.
		_, erased := record.GoneUpTo(c.Head)
		if e := entries[id]; !e.Gone() && !e.Emptied() && (e.Floor < c.Head || erased < c.Rows) {
			return fmt.Errorf("rebuild: %w: the old table has nothing of %s any more, the fresh one %d rows of it up to position %d, and neither retention nor an erasure dropped it. These may be its only copy: nothing was changed; run `almanac verify %s`, and see what emptied the table before this is run again or with --abort",
				ErrDiffers, schemas.PublicShardName(r.topic.Name, c.Month, id), c.Rows, c.Head, r.topic.Name)
		}
		if err := r.cfg.DB.DropShard(ctx, schemas.ShardRef{Topic: r.fresh, Month: c.Month, ID: id}); err != nil {
			return err
		}
	}
	return nil
}

// same says whether a shard of the fresh table may take the old one's place: it has
// the same, or exactly what its frames brought when the old one has not.
func (r *rebuild) same(ctx context.Context, id schemas.Shard, old, fresh tables.Count) (bool, error) {
	if old == fresh {
		return true, nil
	}
	if old.Head != fresh.Head || !r.mayInsert(id) {
		return false, nil
	}
	subject := schemas.ShardSubject(r.topic.Name, old.Month, id)
	last, err := streams.DecideLast(ctx, r.js, schemas.StreamShards, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("rebuild: %s: %w", subject, err)
	}
	seq, err := streams.FindFrame(ctx, r.js, subject, old.Head, last.Sequence)
	if err != nil {
		return false, err
	}
	p, err := streams.FrameFrom(ctx, r.js, subject, seq)
	return err == nil && p.Pos == old.Head && p.ShardRows == fresh.Rows, err
}

// again copies a whole shard of the frozen table.
func (r *rebuild) again(ctx context.Context, ref schemas.ShardRef) (tables.Count, error) {
	if err := r.cfg.DB.DropShard(ctx, schemas.ShardRef{Topic: r.fresh, Month: ref.Month, ID: ref.ID}); err != nil {
		return tables.Count{}, err
	}
	r.touched[ref.ID] = true
	if err := r.fill(ctx, ref, 0); err != nil {
		return tables.Count{}, err
	}
	counts, err := r.cfg.DB.Counts(ctx, r.fresh)
	return counts[ref.ID], err
}
