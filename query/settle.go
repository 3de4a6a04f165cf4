package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// storedPoll is how often a wait looks at first: well below what a sink waits for
// company. Each look takes a quarter longer to come, up to storedPollMost: a look at
// hundreds of shards must not compete with the sinks that fill them.
const (
	storedPoll     = 25 * time.Millisecond
	storedPollMost = 250 * time.Millisecond
)

// WaitStored waits until everything that some topics accepted before the call can be
// selected in SQL, for as long as there is progress. After stall without any it
// returns how many of those events cannot be selected yet. heard, when not nil, is
// told at every look.
func (r *Reader) WaitStored(ctx context.Context, topics []string, stall time.Duration, heard func(pending uint64)) (pending uint64, err error) {
	return r.waitMoving(ctx, topics, stall, stall > 0, heard)
}

// WaitStoredUntold is WaitStored for a caller that no sink is to hurry for: none is told that it waits.
func (r *Reader) WaitStoredUntold(ctx context.Context, topics []string, stall time.Duration) (pending uint64, err error) {
	return r.waitMoving(ctx, topics, stall, false, nil)
}

// waitMoving waits for as long as there is progress. tells: sinks hear of it.
func (r *Reader) waitMoving(ctx context.Context, topics []string, stall time.Duration, tells bool, heard func(pending uint64)) (pending uint64, err error) {
	info, err := streams.Info(ctx, r.js, schemas.StreamEvents)
	if err != nil {
		return 0, fmt.Errorf("query: %s: %w", schemas.StreamEvents, err)
	}
	moved, before := time.Now(), uint64(0)
	pending, _, err = r.waitStored(ctx, topics, streams.EndOf(info), nil, tells, func(pending uint64) (enough bool) {
		if heard != nil {
			heard(pending)
		}
		if pending != before {
			moved, before = time.Now(), pending
		}
		return time.Since(moved) >= stall
	})
	return pending, err
}

// TopicNames returns the names of all topics.
func (r *Reader) TopicNames(ctx context.Context) ([]string, error) {
	topics, err := r.reg.Topics(ctx)
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	return names, err
}

// WaitStoredUpTo waits until what some topics have up to a fence in EVENTS can
// be selected in SQL, at most for within, however much comes behind it. It returns
// how many of those events cannot yet; heard, when not nil, is told at every look.
//
// It goes by the frames up to tails; nil: up to the ends that SHARDS has once everything up to the fence is routed, which it returns.
// Who waits again for the same names them: a topic that is written to has frames above them that are not stored, at any time.
func (r *Reader) WaitStoredUpTo(ctx context.Context, topics []string, upTo schemas.Source, tails []streams.Tail, within time.Duration, heard func(pending uint64)) (pending uint64, ends []streams.Tail, err error) {
	deadline := time.Now().Add(within)
	return r.waitStored(ctx, topics, upTo, tails, within > 0, func(pending uint64) bool {
		if heard != nil {
			heard(pending)
		}
		return time.Now().After(deadline)
	})
}

// waitStored looks until everything is stored, or enough says that it has waited
// enough. tells: sinks hear that it waits. Without tails, they are read once everything is routed: what comes later is not waited for.
func (r *Reader) waitStored(ctx context.Context, topics []string, upTo schemas.Source, tails []streams.Tail, tells bool, enough func(pending uint64) bool) (pending uint64, ends []streams.Tail, err error) {
	ends = tails
	pause := storedPoll
	tick := time.NewTimer(pause)
	defer tick.Stop()
	routed := false
	for asked := (time.Time{}); ; {
		if tells && time.Since(asked) > waitingEvery {
			asked = time.Now()
			streams.SayWaiting(r.js, topics...)
		}
		if !routed {
			if pending, err = r.unrouted(ctx, topics, upTo); err != nil {
				return pending, ends, err
			}
			if routed = pending == 0; routed && ends == nil {
				if ends, err = r.ends(ctx, topics); err != nil {
					return 0, nil, err
				}
				tails = ends
			}
		}
		if routed {
			if pending, tails, err = r.unstored(ctx, tails); err != nil {
				return pending, ends, err
			}
		}
		if enough(pending) || pending == 0 {
			return pending, ends, nil
		}
		select {
		case <-ctx.Done():
			return pending, ends, ctx.Err()
		case <-tick.C:
			pause = min(pause+pause/4, storedPollMost)
			tick.Reset(pause)
		}
	}
}

// ends are the last frames of the shards of some topics, not nil.
func (r *Reader) ends(ctx context.Context, topics []string) ([]streams.Tail, error) {
	all := []streams.Tail{}
	for _, t := range topics {
		tails, err := streams.Tails(ctx, r.js, t, nil)
		if err != nil {
			return nil, err
		}
		all = slices.AppendSeq(all, maps.Values(tails))
	}
	return all, nil
}

// waitingEvery is how often a reader that waits says so: a third of what one word
// counts.
const waitingEvery = time.Second

// unrouted counts the events some topics have in EVENTS up to a fence that no
// router dealt with yet.
func (r *Reader) unrouted(ctx context.Context, topics []string, upTo schemas.Source) (uint64, error) {
	var n uint64
	for _, name := range topics {
		more, err := r.waitingOf(ctx, name, upTo)
		if err != nil {
			return 0, err
		}
		n += more.Events
	}
	return n, nil
}

// waitingOf returns the events of one topic that no router dealt with.
func (r *Reader) waitingOf(ctx context.Context, name string, upTo schemas.Source) (b streams.Backlog, err error) {
	t, err := r.reg.Topic(ctx, name)
	if err != nil {
		return b, err
	}
	routed, err := streams.Checkpoints(ctx, r.js, t.Name)
	if err != nil {
		return b, err
	}
	b, err = streams.Waiting(ctx, r.js, &t, routed, nil, upTo)
	if err != nil || b.Events > 0 {
		return b, err
	}
	misfits, err := streams.Misfits(ctx, r.js, &t, routed) // of checkpoints whose numbers EVENTS does not fit
	if err != nil || len(misfits) == 0 {
		return streams.Backlog{}, err
	}
	return streams.Waiting(ctx, r.js, &t, routed, misfits, upTo)
}

// unstored keeps the tails that are not stored yet and bounds their rows from
// above: a shard of which nothing is known counts whole.
func (r *Reader) unstored(ctx context.Context, tails []streams.Tail) (n uint64, left []streams.Tail, err error) {
	floored := map[string][]registry.Shard{} // by topic
	n, _, left, err = r.unstoredOf(ctx, tails, func(topic string) (map[schemas.Shard]uint64, error) { return r.db.Heads(ctx, topic) }, func(e registry.Shard) {
		floored[e.Topic] = append(floored[e.Topic], e)
	})
	if err != nil || len(floored) == 0 {
		return n, left, err
	}
	tailOf := make(map[schemas.Shard]streams.Tail, len(tails))
	for _, t := range tails {
		tailOf[t.Ref.ID] = t
	}
	for topic, shards := range floored {
		more, lacking, err := r.lackBelowFloor(ctx, topic, shards, tailOf)
		if err != nil {
			return 0, nil, err
		}
		left, n = append(left, lacking...), n+more
	}
	return n, left, nil
}

// unstoredOf is unstored by heads that are known, with the bytes of the frames. floored, when not nil, is called with each shard whose
// floor alone says that it is stored.
func (r *Reader) unstoredOf(ctx context.Context, tails []streams.Tail, headsOf func(topic string) (map[schemas.Shard]uint64, error), floored func(registry.Shard)) (n, bytes uint64, left []streams.Tail, err error) {
	heads, entries := map[string]map[schemas.Shard]uint64{}, map[string]map[schemas.Shard]registry.Shard{}
	for _, t := range tails {
		topic := t.Ref.Topic
		if heads[topic] == nil {
			if heads[topic], err = headsOf(topic); err != nil {
				return 0, 0, nil, err
			}
		}
		head := heads[topic][t.Ref.ID]
		if head >= t.Pos {
			continue
		}
		if entries[topic] == nil { // one read for all, there may be hundreds
			all, err := r.reg.Shards(ctx, topic, 0)
			if err != nil {
				return 0, 0, nil, err
			}
			entries[topic] = entriesOf(all)
		}
		switch e := entries[topic][t.Ref.ID]; {
		case e.Gone(): // what retention drops is not stored any more
		case e.Fork != nil && e.Fork.Done && t.Pos > e.SealedAt: // what lay above was moved into another shard
			t.Ref.ID, t.Pos, t.ShardRows = e.Fork.To, e.Fork.Frames(), e.Fork.Rows
			to := entries[topic][t.Ref.ID]
			if to.Head(heads[topic][t.Ref.ID]) < t.Pos && !to.Gone() {
				left = append(left, t)
				n += t.ShardRows
			}
		case e.Head(head) < t.Pos:
			left = append(left, t)
			n += t.ShardRows * (t.Pos - head) / t.Pos
			bytes += t.ShardBytes * (t.Pos - head) / t.Pos
		case floored != nil:
			floored(e)
		}
	}
	return n, bytes, left, nil
}

// RoutedUpTo returns the time up to which all that a topic accepted is in SHARDS, or was refused by its router: NATS's time
// at the call, or just before the first event was accepted that waits.
func (r *Reader) RoutedUpTo(ctx context.Context, topic string) (time.Time, error) {
	info, err := streams.Info(ctx, r.js, schemas.StreamEvents)
	if err != nil {
		return time.Time{}, fmt.Errorf("query: %s: %w", schemas.StreamEvents, err)
	}
	end := streams.EndOf(info)
	waits, err := r.waitingOf(ctx, topic, end)
	if err != nil {
		return time.Time{}, err
	}
	if waits.Events > 0 {
		return waits.First.Add(-1), nil
	}
	return time.Unix(0, end.Stored), nil
}
