package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
)

// List is the erasures of a topic, or of all when topic is empty, the newest
// first.
func List(all map[string]ledger.Erasures, topic string) []ledger.Erasure {
	var out []ledger.Erasure
	for name, l := range all {
		if topic == "" || name == topic {
			out = append(out, l...)
		}
	}
	slices.SortFunc(out, func(a, b ledger.Erasure) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return out
}

// Find finds an erasure by its id, whatever its topic.
func (x *Eraser) Find(ctx context.Context, id string) (ledger.Erasure, error) {
	all, err := x.cfg.Registry.Ledgers(ctx)
	if err != nil {
		return ledger.Erasure{}, err
	}
	for _, e := range List(all, "") {
		if e.ID == id {
			return e, nil
		}
	}
	return ledger.Erasure{}, fmt.Errorf("%w: no erasure %q; `almanac erase ls` lists them", ErrRequest, id)
}

// Redact puts pseudonyms in place of the users and the filter of an erasure, for
// good. It is refused as long as a stream may hold events of it: until then the
// entry is what keeps them away. What it cannot see is an old copy of ClickHouse:
// after the redaction nothing takes out again what comes back with one.
func (x *Eraser) Redact(ctx context.Context, topic, id string) (ledger.Erasure, error) {
	e, err := x.cfg.Registry.Erasure(ctx, topic, id)
	if err != nil || e.Redacted {
		return e, err
	}
	if err := x.unneeded(ctx, &e); err != nil {
		return e, err
	}
	return x.redact(ctx, &e)
}

// redact is Redact of an entry that is not needed.
func (x *Eraser) redact(ctx context.Context, e *ledger.Erasure) (ledger.Erasure, error) {
	topic, id := e.Topic, e.ID
	if err := errors.Join(x.uncopied(ctx, e), x.carriedOut(ctx, e, false)); err != nil {
		return *e, err
	}
	done, err := x.cfg.Registry.AmendErasure(ctx, topic, id, func(e *ledger.Erasure) bool {
		if e.Redacted {
			return false
		}
		*e = Redacted(*e)
		return true
	})
	if err != nil {
		return done, err
	}
	return done, x.clearThird(ctx, topic, id)
}

// unneeded says with an error why an entry is still needed: what keeps its events
// from coming back out of the streams is the entry.
func (x *Eraser) unneeded(ctx context.Context, e *ledger.Erasure) error {
	if e.State != ledger.Erased {
		return fmt.Errorf("%w: erasure %s is %s; resume it first", ErrRequest, e.ID, e.State)
	}
	held, err := x.holdings(ctx, e)
	if err != nil {
		return err
	}
	for _, h := range held {
		if h.Messages > 0 {
			return fmt.Errorf("%w: %s has %d messages of its time and from before it; `almanac erase show %s` says until when, --purge takes those with its events", ErrStillThere, h.Stream, h.Messages, e.ID)
		}
	}
	return nil
}

// uncopied refuses to let go of an entry while a backup is made. It may have tables from before the erasure, and its registry, which is
// copied after them, is to say whom it meant: who restores it has those rows taken out again by that.
func (x *Eraser) uncopied(ctx context.Context, e *ledger.Erasure) error {
	if err := streams.MayTake(ctx, x.js); err != nil {
		return fmt.Errorf("erase: %s stays as it is: %w", e.ID, err)
	}
	return nil
}

// carriedOut refuses to let go of an entry whose rows are being taken, or ClickHouse has again: the entry alone says which those are. Of
// the second, letGo lets go all the same, as where that cannot be done again.
func (x *Eraser) carriedOut(ctx context.Context, e *ledger.Erasure, letGo bool) error {
	records, err := x.cfg.Registry.ErasureRecords(ctx, e.Topic)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Pending != nil && r.Pending.Erasure == e.ID {
			return fmt.Errorf("%w: rows of erasure %s are being taken, or that was cut off: `almanac erase resume %s` ends it. Then ask again", ErrRequest, e.ID, e.ID)
		}
	}
	if letGo {
		return nil
	}
	behind, err := x.behindNow(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(behind[e.Topic], e.ID) {
		return fmt.Errorf("%w: erasure %s is not carried out in ClickHouse as it is now, which was restored from an older copy; a sink does that again by itself, and `almanac erase resume %s` at once. Then ask again", ErrRequest, e.ID, e.ID)
	}
	return nil
}

// behindNow is Registry.Behind by what ClickHouse has at this moment, and an error while it is away.
func (x *Eraser) behindNow(ctx context.Context) (map[string][]string, error) {
	reg := x.cfg.Registry.WithThird(tables.FreshLedger{DB: x.cfg.DB})
	all, err := reg.Ledgers(ctx)
	if err != nil {
		return nil, err
	}
	return reg.Behind(ctx, all)
}

// Forget takes an erasure out of the ledger, for good: its proof is gone, how many
// rows are gone from each shard stays, so that verify adds up. It is refused as
// long as a stream may hold events of it, which a later reader would see
// again; stillThere forgets it all the same. What it cannot see is an old copy of
// ClickHouse.
func (x *Eraser) Forget(ctx context.Context, topic, id string, stillThere bool) error {
	e, err := x.cfg.Registry.Erasure(ctx, topic, id)
	if err != nil {
		return err
	}
	if err := x.unneeded(ctx, &e); err != nil && (!stillThere || !errors.Is(err, ErrStillThere)) {
		return err
	}
	if err := outlive(ctx, &e); err != nil {
		return err
	}
	if err := errors.Join(x.uncopied(ctx, &e), x.carriedOut(ctx, &e, stillThere)); err != nil {
		return err
	}
	if err := x.cfg.Registry.ForgetErasure(ctx, topic, id); err != nil {
		return err
	}
	return x.clearThird(ctx, topic, id)
}
