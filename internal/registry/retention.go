package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Step is what retention asks of a shard next.
type Step string

// The steps, in the order a shard takes them. An active shard is retired before
// anything goes, so that it can be sealed and closed: only then are its numbers
// final and can no frame come any more.
const (
	Keep        Step = ""
	RetireIt    Step = "retire"
	AnonymiseIt Step = "anonymise"
	DropIt      Step = "drop"
)

// minShardAge is how old an active shard must be to be retired: late events, each
// of which is past at once, so make a shard a day and lane and not one apiece.
const minShardAge = 24 * time.Hour

// overdueAfter is what routers, sinks and the janitor may take for a shard that
// is due: minutes, unless one of them is down.
const overdueAfter = time.Hour

// reasonRetention is why a shard was left that retention retired.
const reasonRetention = "retention"

// Due is when retention is to clear the topic's anonymised fields in the shard,
// and when to drop it: when the youngest event it may hold is that old. Zero is
// never. MaxTs says how young that is: it covers every event, is exact once the
// shard is closed, and never lies beyond the month; an empty shard counts as if it
// had an event in the month's last instant.
func (s *Shard) Due(t *schemas.Topic) (anonymise, drop time.Time) {
	youngest := s.youngest()
	if t.Anonymise.On() {
		anonymise = youngest.AddDate(0, 0, t.Anonymise.AfterDays)
	}
	if t.KeepDays > 0 {
		drop = youngest.AddDate(0, 0, t.KeepDays)
	}
	return anonymise, drop
}

// Gone says whether the shard's events are dropped, or about to be: no reader
// shows them and nothing brings them back.
func (s *Shard) Gone() bool { return s.Status == Dropping || s.Status == Dropped }

// DroppedOf lists the shards among entries whose events are dropped, or about to be.
func DroppedOf(entries []Shard) map[schemas.ShardRef]bool {
	gone := map[schemas.ShardRef]bool{}
	for i := range entries {
		if entries[i].Gone() {
			gone[entries[i].Ref()] = true
		}
	}
	return gone
}

// NextStep is what retention asks of the shard now. It decides by the topic's
// descriptor alone, whatever the month's head entry recorded.
func (s *Shard) NextStep(t *schemas.Topic, now time.Time) Step {
	if s.Gone() {
		if s.Status == Dropped {
			return Keep
		}
		return DropIt // begun, so it is ended, whatever the topic says by now
	}
	anonymise, drop := s.Due(t)
	past := !drop.IsZero() && now.After(drop)
	named := !anonymise.IsZero() && now.After(anonymise) && !s.AnonymisedFor(t)
	leaves := s.Status == Active && s.Cold(t, now) // a closed shard moves without a step
	switch {
	case !past && !named && !leaves:
		return Keep
	case s.Status == Active && s.Reason == "" && now.Sub(s.CreatedAt) >= minShardAge:
		return RetireIt
	case s.Status != Closed:
		return Keep // the router seals it, a sink closes it
	case past:
		return DropIt
	}
	return AnonymiseIt
}

// AnonymisedFor says whether everything the topic wants cleared is cleared.
func (s *Shard) AnonymisedFor(t *schemas.Topic) bool {
	return !slices.ContainsFunc(t.Anonymise.Fields, func(f string) bool { return !slices.Contains(s.Anonymised, f) })
}

// Overdue says what retention should have done with the shard and since when, or
// Keep.
func (s *Shard) Overdue(t *schemas.Topic, now time.Time) (Step, time.Time) {
	if s.Status == Dropping {
		return DropIt, s.DroppedAt
	}
	if s.Status == Dropped {
		return Keep, time.Time{}
	}
	late := func(due time.Time) bool { // a shard of late events is past from its first day
		return now.After(due.Add(overdueAfter)) && now.After(s.CreatedAt.Add(minShardAge+overdueAfter))
	}
	anonymise, drop := s.Due(t)
	switch {
	case !drop.IsZero() && late(drop):
		return DropIt, drop
	case !anonymise.IsZero() && late(anonymise) && !s.AnonymisedFor(t):
		return AnonymiseIt, anonymise
	}
	return Keep, time.Time{}
}

// reachable is when what is due can be begun: an active shard is left alone until
// it is old enough.
func (s *Shard) reachable(due time.Time) time.Time {
	if old := s.CreatedAt.Add(minShardAge).UTC(); s.Status == Active && due.Before(old) {
		return old
	}
	return due
}

// Retire takes an active shard out of its lane without a successor: the next
// frame of the lane's month, if one comes, makes a new shard. The router that owns
// the lane seals it then. A shard that is not active any more is left as it is.
func (r *Registry) Retire(ctx context.Context, s Shard) error {
	for {
		h, err := r.Head(ctx, s.Topic, s.Month)
		if err != nil {
			return err
		}
		if h.Active[s.ID.Lane()] != s.ID {
			return nil
		}
		old, err := r.Shard(ctx, s.Ref())
		if err != nil {
			return err
		}
		old.Reason = reasonRetention
		h.Retired = maps.Clone(h.Retired)
		if h.Retired == nil {
			h.Retired = map[schemas.Shard]int{}
		}
		h.Retired[s.ID] = s.ID.Lane()
		delete(h.Active, s.ID.Lane())
		err = r.commit(ctx, &change{key: old.key(), rev: old.rev, v: &old}, &change{key: h.key(), rev: h.rev, v: &h})
		if err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// MarkDropping states that a closed shard is past its retention: from then on
// readers pass it over, and its floor keeps sinks from storing it again. rows is
// what ClickHouse holds of it. It must have succeeded before anything of the shard
// goes. The first to mark it gives the time, the rows and the reason. seen is from before the
// caller saw that all of the topic is derived: when something has dropped what is derived since,
// or does, it is a conflict; see DerivedDropper.
func (r *Registry) MarkDropping(ctx context.Context, ref schemas.ShardRef, seen DerivedDrops, rows uint64, reason string, at time.Time) (Shard, error) {
	return r.markDropping(ctx, ref, seen, rows, func(s *Shard) (string, []*change, error) { return reason, nil, nil }, at)
}

// MarkPast is MarkDropping of a shard that is to be dropped by its topic's descriptor, as that is at the mark itself: one that
// was declared to be kept longer meanwhile is left closed, and returned so.
func (r *Registry) MarkPast(ctx context.Context, ref schemas.ShardRef, seen DerivedDrops, rows uint64, at time.Time) (Shard, error) {
	return r.markDropping(ctx, ref, seen, rows, func(s *Shard) (string, []*change, error) {
		var t schemas.Topic
		rev, err := r.get(ctx, schemas.TopicKey(ref.Topic), &t)
		if errors.Is(err, ErrNotFound) {
			err = r.unknownTopic(ctx, ref.Topic)
		}
		if err != nil || s.NextStep(&t, at) != DropIt {
			return "", nil, err
		}
		// Written over itself, so that it is not declared again in between.
		return fmt.Sprintf("kept %d days", t.KeepDays), []*change{{key: schemas.TopicKey(ref.Topic), rev: rev, v: &t}}, nil
	}, at)
}

// markDropping marks a closed shard, with the changes that why wants, unless why has no reason for it by now.
func (r *Registry) markDropping(ctx context.Context, ref schemas.ShardRef, seen DerivedDrops, rows uint64, why func(*Shard) (string, []*change, error), at time.Time) (Shard, error) {
	for {
		s, err := r.Shard(ctx, ref)
		if err != nil || s.Gone() {
			return s, err
		}
		if s.Status != Closed {
			return s, fmt.Errorf("%w: %s is %s, only a closed shard is dropped", ErrConflict, s.Name(), s.Status)
		}
		reason, with, err := why(&s)
		if err != nil || reason == "" {
			return s, err
		}
		now, err := r.DerivedDrops(ctx, ref.Topic)
		if err != nil {
			return s, err
		}
		if now.Drops = now.live(time.Now()); now.rev != seen.rev || len(now.Drops) > 0 {
			return s, fmt.Errorf("%w: sums or copies of topic %q are being dropped to be derived again, or were just now; %s stays until the next round", ErrConflict, ref.Topic, s.Name())
		}
		s.Status, s.Floor = Dropping, max(s.Floor, s.SealedAt)
		s.DroppedAt, s.DroppedRows, s.DropReason = at.UTC(), rows, reason
		c := &change{key: s.key(), rev: s.rev, v: &s}
		// Its revision is expected, so that no lease is taken in between.
		err = r.commit(ctx, append(with, c, &change{key: schemas.DerivedDropsKey(ref.Topic), rev: now.rev, v: &now})...)
		if err == nil {
			s.rev = c.rev
			return s, nil
		}
		if !errors.Is(err, ErrConflict) {
			return s, err
		}
	}
}

// MarkDropped states that a dropping shard's events are gone from ClickHouse and
// from SHARDS.
func (r *Registry) MarkDropped(ctx context.Context, s Shard) error {
	_, err := r.amend(ctx, s.Ref(), func(s *Shard) bool {
		dropping := s.Status == Dropping
		if dropping {
			s.Status = Dropped
		}
		return dropping
	})
	return err
}

// MarkAnonymised states that the fields are cleared in every row of a closed
// shard, and its frames taken out of SHARDS, and in the same step takes the mark of BeginClearing away: who sees
// none sees that the fields are cleared.
func (r *Registry) MarkAnonymised(ctx context.Context, ref schemas.ShardRef, fields []string, at time.Time) error {
	for {
		s, err := r.Shard(ctx, ref)
		if err != nil {
			return err
		}
		record, err := r.ErasureRecord(ctx, ref)
		if err != nil {
			return err
		}
		var changes []*change
		all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(s.Anonymised), fields...))))
		if !s.Gone() && !slices.Equal(all, s.Anonymised) {
			s.Anonymised, s.AnonymisedAt = all, at.UTC()
			changes = append(changes, &change{key: s.key(), rev: s.rev, v: &s})
		}
		if !record.ClearingAt.IsZero() {
			record.ClearingAt = time.Time{}
			changes = append(changes, &change{key: record.Key(), rev: record.Rev, v: &record})
		}
		if len(changes) == 0 {
			return nil
		}
		if err := r.commit(ctx, changes...); !errors.Is(err, ErrConflict) {
			return err
		}
	}
}
