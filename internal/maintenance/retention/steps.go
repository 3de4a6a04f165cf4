package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// retentionRound is how long retention may begin new work in one round of
// housekeeping: the streams must be swept too, and the next round goes on.
const retentionRound = 10 * time.Second

// retain takes each shard that is past its topic's retention one step further:
//
//	active ─ retire ─▶ (the router seals, a sink closes) ─▶ closed ─ anonymise ─▶ closed ─ drop ─▶ dropping ─▶ dropped
//
// Every step begins with what a reader or a sink goes by, the registry's entry,
// ends with a look at what is there, and may be done again, from its beginning and
// by two at once. now is the janitor's time.
func (j *Janitor) retain(ctx context.Context, topics []registry.TopicShards, now time.Time) error {
	began := time.Now()
	var failed []error
	for i := range topics {
		t := &topics[i].Topic
		gone, due := false, false
		for _, e := range topics[i].Shards {
			gone = gone || e.Status == registry.Dropped || e.Emptied()
			step := e.NextStep(t, now)
			if step == registry.Keep || time.Since(began) > retentionRound {
				continue
			}
			err := j.mayTake(ctx)
			if errors.Is(err, streams.ErrCopying) {
				return errors.Join(append(failed, err)...)
			}
			switch {
			case err != nil:
			case step == registry.RetireIt:
				err = j.cfg.Registry.Retire(ctx, e)
			case step == registry.AnonymiseIt:
				err = j.anonymise(ctx, t, e, now)
			case step == registry.DropIt:
				due = due || e.Status == registry.Closed
				if !waits(t, &e, topics[i].Shards) {
					err = j.drop(ctx, t, e, now, j.cfg.Registry.MarkPast)
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errors.Is(err, streams.ErrCopying) {
				return errors.Join(append(failed, err)...)
			}
			if err != nil {
				err = j.cfg.Registry.IfRemoved(ctx, err, t)
				failed = append(failed, fmt.Errorf("janitor: retention of %s: %w", e.Name(), err))
			}
		}
		if !due {
			delete(j.looked, t.Name)
		}
		if gone {
			failed = append(failed, j.dropAgain(ctx, &topics[i]))
		}
	}
	return errors.Join(failed...)
}

// mark marks a closed shard as dropping, by registry.MarkDropping or as it does. One that is to stay by now is returned as it was.
type mark func(ctx context.Context, ref schemas.ShardRef, seen registry.DerivedDrops, rows uint64, at time.Time) (registry.Shard, error)

// drop drops a closed shard, or ends what a drop began.
func (j *Janitor) drop(ctx context.Context, t *schemas.Topic, e registry.Shard, now time.Time, mark mark) error {
	cfg := &j.cfg
	if e.Status == registry.Closed {
		// Read before what is derived: what drops that changes it.
		seen, err := cfg.Registry.DerivedDrops(ctx, t.Name)
		if err != nil {
			return err
		}
		if derived, err := j.derived(ctx, t, e.Ref(), now); err != nil || !derived {
			return err
		}
		cfg.Crash("janitor.derived")
		_, rows, err := cfg.DB.HeadRows(ctx, e.Ref())
		if err != nil {
			return err
		}
		// What stays of it is its sums: that none stood there would say that an erasure took them.
		if now, err := cfg.Registry.Shard(ctx, e.Ref()); err != nil {
			return err
		} else if err := lacks(t, &now, rows); err != nil {
			return err
		}
		cfg.Crash("janitor.before-mark")
		if e, err = mark(ctx, e.Ref(), seen, rows, now); err != nil || !e.Gone() {
			return err
		}
		// Another shard of the topic waits for what has come by now.
		delete(j.looked, t.Name)
		cfg.Crash("janitor.after-mark")
	}
	// Before the rows: a stub without its row would be an error to readers.
	if err := j.cleaner.Expire(ctx, t, &e); err != nil {
		return err
	}
	cfg.Crash("janitor.after-expiry")
	// The stream first: as long as the rows are there no reader takes its frames for
	// fresh ones, and afterwards there are none.
	if err := j.clearFrames(ctx, e, schemas.ClearedDropped); err != nil {
		return err
	}
	cfg.Crash("janitor.before-drop")
	if err := cfg.DB.DropShard(ctx, e.Ref()); err != nil {
		return err
	}
	cfg.Crash("janitor.after-drop")
	if err := cfg.Registry.MarkDropped(ctx, e); err != nil {
		return err
	}
	cfg.Hooks.dropped(e.Ref(), e.DroppedRows, e.DropReason)
	return nil
}

// look is how far a topic's shards had rows at a time.
type look struct {
	at    time.Time
	heads map[schemas.ShardRef]uint64
}

// lookTime is how long rows may stay because others were not looked for repeats, before it
// is reported. Usually it takes seconds.
const lookTime = 5 * time.Minute

// derived reports whether a shard's rows may go. They may not before they are in the topic's
// sums, which are all that stays of them, or while a closed shard of their lane lacks rows, among which copies may
// be: those are errors. And they may not before the rows that stood in other shards of the lane when retention
// first looked were looked for repeats: a copy that is found later would count.
func (j *Janitor) derived(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, now time.Time) (bool, error) {
	if !t.HasSums() {
		return true, nil
	}
	// An erasure under way takes rows and then says so in the entry: the round after it goes on.
	shards, err := j.cfg.Registry.Shards(ctx, t.Name, 0)
	if err != nil {
		return false, err
	}
	d, err := derived.Of(j.cfg.DB).State(ctx, t)
	if err != nil {
		return false, err
	}
	for _, e := range shards {
		if e.ID.Lane() != ref.ID.Lane() {
			continue
		}
		if err := lacks(t, &e, d.Shards[e.Ref()].Stored.Rows); err != nil {
			return false, err
		}
	}
	s := d.Shards[ref]
	if why := s.Waits(); why != "" {
		return false, fmt.Errorf("the shard's sums are not complete: %s; see that a sink runs", why)
	}
	first, looked := j.looked[t.Name]
	if !looked {
		first = look{now, d.Heads()}
		j.looked[t.Name] = first
	}
	why := d.Behind(ref.ID.Lane(), first.heads)
	if why != "" && now.Sub(first.at) >= lookTime {
		return false, fmt.Errorf("its rows stay until other shards of the lane were looked through for copies of them, which has taken since %s: %s; see that a sink runs", first.at.UTC().Format(time.RFC3339), why)
	}
	return why == "", nil
}

// lacks is the error of a closed shard, of a topic with sums, that has fewer rows than its entry says.
func lacks(t *schemas.Topic, e *registry.Shard, has uint64) error {
	if !t.HasSums() || e.Status != registry.Closed || has >= e.Rows {
		return nil
	}
	return fmt.Errorf("ClickHouse lost rows of %s, it has %d of %d; when they come back after others were dropped, bills may count copies or miss diffs. Run `almanac repair %s`, then retention goes on", e.Name(), has, e.Rows, t.Name)
}

// dropAgain drops what stands in shards that are dropped, by retention or by an
// erasure that took them whole. ClickHouse forgets the insert tokens of a partition
// with it, so a sink that read its frames before the drop and slept over it stores
// them; nothing but another look can tell.
func (j *Janitor) dropAgain(ctx context.Context, t *registry.TopicShards) error {
	heads, err := j.cfg.DB.Heads(ctx, t.Topic.Name)
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range t.Shards {
		if heads[e.ID] == 0 || e.Status != registry.Dropped && !e.Emptied() {
			continue
		}
		if e.Emptied() {
			if whole, err := j.erasedWhole(ctx, e); err != nil || !whole {
				failed = append(failed, err)
				continue
			}
		}
		j.cfg.Hooks.fault(e.Ref(), fmt.Errorf("janitor: %s: %w, up to position %d: dropping them again", e.Name(), ErrCameBack, heads[e.ID]))
		failed = append(failed, j.cfg.DB.DropShard(ctx, e.Ref()))
	}
	return errors.Join(failed...)
}

// erasedWhole says that erasures took every row the shard's frames ever brought,
// the last of them by a drop, so that nothing may stand there. Were ClickHouse
// lacking some then, a repair may have put them back.
func (j *Janitor) erasedWhole(ctx context.Context, e registry.Shard) (bool, error) {
	record, err := j.cfg.Registry.ErasureRecord(ctx, e.Ref())
	if err != nil || !record.Dropped() {
		return false, err
	}
	msg, err := streams.DecideLast(ctx, j.js, schemas.StreamShards, e.Ref().Subject())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("janitor: last frame of %s: %w", e.Name(), err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil {
		return false, nil // no frame; verify names it
	}
	gone, _ := record.GoneUpTo(e.SealedAt)
	return p.Pos == e.SealedAt && gone >= p.ShardRows, nil
}

// anonymise clears the topic's fields in a closed shard, where no frame comes any
// more: in ClickHouse, and then in SHARDS, by taking the frames out, whatever the
// replay window says. The entry tells last, so that a crash begins again.
func (j *Janitor) anonymise(ctx context.Context, t *schemas.Topic, e registry.Shard, now time.Time) error {
	cfg := &j.cfg
	if err := j.cleaner.CheckCleared(ctx, t, &e); err != nil {
		return err
	}
	// An erasure that has counted its rows must find them, and one that has not may tell them by
	// what would be cleared; the next round goes on.
	began, err := cfg.Registry.BeginClearing(ctx, e.Ref(), time.Now().UTC())
	if err != nil || !began {
		return err
	}
	// Read after the mark: an erasure that is entered later meets it.
	all, err := cfg.Registry.Ledger(ctx, e.Topic)
	if err != nil {
		return err
	}
	if waits, err := awaited(all, &e, now); waits {
		return errors.Join(err, cfg.Registry.EndClearing(ctx, e.Ref()))
	}
	cfg.Crash("janitor.before-clear")
	// The round began with the topic as it was: what is to stay by now, or is more by now, is for the next one.
	same, err := j.sameFields(ctx, t, &e, now)
	if err != nil || !same {
		return errors.Join(err, cfg.Registry.EndClearing(ctx, e.Ref()))
	}
	if err := cfg.DB.ClearFields(ctx, t, e.Month, e.ID, t.Anonymise.Fields); err != nil {
		return err
	}
	cfg.Crash("janitor.after-clear")
	if err := derived.Of(cfg.DB).Drop(ctx, e.Ref(), cfg.Registry.DerivedDropper(e.Topic)); err != nil {
		return err
	}
	if err := j.clearFrames(ctx, e, schemas.ClearedAnonymised); err != nil {
		return err
	}
	cfg.Crash("janitor.before-anonymised")
	if err := cfg.Registry.MarkAnonymised(ctx, e.Ref(), t.Anonymise.Fields, now); err != nil {
		return err
	}
	cfg.Hooks.anonymised(e.Ref(), t.Anonymise.Fields)
	return nil
}

// sameFields says whether a topic is still declared so that a shard's fields, the same ones, are to be cleared.
func (j *Janitor) sameFields(ctx context.Context, t *schemas.Topic, e *registry.Shard, now time.Time) (bool, error) {
	fresh, err := j.cfg.Registry.Topic(ctx, t.Name)
	return err == nil && e.NextStep(&fresh, now) == registry.AnonymiseIt && slices.Equal(fresh.Anonymise.Fields, t.Anonymise.Fields), err
}
