package cleaner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Retention takes a shard's rows. What the front has of them goes first: a stub whose row is gone
// would be an error to every reader. A key whose last record is of the shard is over with it.

// kept tells which messages of a lane have their row in a shard.
type kept struct {
	shard *registry.Shard
	// upTo is the sequence of the last record in the front that the shard has.
	upTo uint64
}

// has reports whether a message's row is in the shard. A stub and a refresh name it. Of other
// records it says so too where they are of a shard of the same month before it, which is dropped
// before it: clearing asks for their rows.
func (k *kept) has(seq uint64, r *records.Record) bool {
	if at := r.Place(); at != nil {
		return at.Month == k.shard.Month && at.Shard == k.shard.ID
	}
	// A front that lost its end gives sequences again, to records of a later time.
	return seq <= k.upTo && schemas.MonthOf(r.Changed) == k.shard.Month && r.Changed <= k.shard.MaxTs
}

// Expire takes what has its row in a closed shard out of the topic's front, and returns once
// nothing of it is left there. All shards of the lane before it must be dropped, or marked. A topic
// whose front does not outlive its rows, as that of timers does, keeps it.
func (c *Cleaner) Expire(ctx context.Context, t *schemas.Topic, s *registry.Shard) error {
	w, k, err := c.keptIn(ctx, t, s)
	if w == nil || err != nil {
		return err
	}
	return c.eachKept(ctx, w, k, func(some []met) error { return c.purge(ctx, w, some) })
}

// purge takes messages out of a front, and those of their keys before them.
func (c *Cleaner) purge(ctx context.Context, w *walk, some []met) error {
	upTo := map[string]uint64{}
	for _, m := range some {
		upTo[m.Subject] = m.Sequence
	}
	out := newLeaving(c, w)
	for _, subject := range slices.Sorted(maps.Keys(upTo)) {
		if err := out.purge(ctx, subject, upTo[subject]); err != nil {
			return err
		}
	}
	_, err := out.end(ctx)
	return err
}

// CheckCleared returns ErrWhole, with a subject, where the topic's front has a record whose row is
// in a closed shard: not its stub alone.
func (c *Cleaner) CheckCleared(ctx context.Context, t *schemas.Topic, s *registry.Shard) error {
	w, k, err := c.keptIn(ctx, t, s)
	if w == nil || err != nil {
		return err
	}
	k.upTo = math.MaxUint64 // rows tell, also where SHARDS lost the shard's last frame
	return c.eachKept(ctx, w, k, func(some []met) error {
		whole := slices.DeleteFunc(some, func(m met) bool { return m.Stub != nil })
		if len(whole) == 0 {
			return nil
		}
		places, err := c.rows(ctx, w, whole)
		if err != nil {
			return err
		}
		for _, m := range whole {
			if places[m.Row].Shard == s.ID {
				return fmt.Errorf("%w: message %d of %s (%s) is whole; the janitor takes its body out once it did not change for the topic's hot_for", ErrWhole, m.Sequence, t.Front(), m.Subject)
			}
		}
		return nil
	})
}

// keptIn prepares a walk for what a lane's front has of a shard; nil where it has nothing.
func (c *Cleaner) keptIn(ctx context.Context, t *schemas.Topic, s *registry.Shard) (*walk, *kept, error) {
	kind := records.Of(t)
	if kind == nil || kind.Whole() {
		return nil, nil, nil
	}
	last, err := streams.DecideLast(ctx, c.js, schemas.StreamShards, s.Ref().Subject())
	w := &walk{topic: t, kind: kind, lane: s.ID.Lane()}
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound) && s.SealedAt == 0:
		return nil, nil, nil // a shard nothing came to
	case errors.Is(err, jetstream.ErrMsgNotFound): // SHARDS lost its frames: what names it goes
		return w, &kept{shard: s}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("cleaner: end of %s: %w", s.Name(), err)
	}
	p, err := schemas.ParsePlaced(last.Header)
	if err != nil {
		return nil, nil, fmt.Errorf("cleaner: end of %s: message %d: %w", s.Name(), last.Sequence, err)
	}
	return w, &kept{shard: s, upTo: p.SourceSeq}, nil
}

// eachKept calls f with the messages that a lane's front has of a shard, some at a time. A cleaner
// beside this one may put a stub behind the walk, before the walk comes to the record. So it goes on with
// what came since it began, until that has nothing of the shard.
func (c *Cleaner) eachKept(ctx context.Context, w *walk, k *kept, f func([]met) error) error {
	first := true
	for began, found := uint64(0), true; found; first = false {
		from := began + 1
		info, err := streams.Info(ctx, c.js, w.topic.Front())
		if err != nil {
			return fmt.Errorf("cleaner: %w", err)
		}
		found, began = first, info.State.LastSeq
		for from > 0 {
			some, next, err := c.someKept(ctx, w, k, from)
			if err != nil {
				return err
			}
			if len(some) > 0 {
				found = true
				if err := f(some); err != nil {
					return err
				}
			}
			from = next
		}
	}
	return nil
}

// someKept reads up to maxSeen messages of a shard from a sequence on. next is where the rest begins, 0 at
// the end.
func (c *Cleaner) someKept(ctx context.Context, w *walk, k *kept, from uint64) (some []met, next uint64, err error) {
	front := w.topic.Front()
	_, err = streams.Headers(ctx, c.js, front, w.topic.SourceFilter(front, strconv.Itoa(w.lane)), from, func(m *streams.Message) error {
		r, err := w.kind.Parse(m)
		if err != nil || !schemas.Literal(m.Subject) || !k.has(m.Sequence, r) {
			return nil
		}
		if len(some) == maxSeen {
			next = m.Sequence
			return errEnough
		}
		some = append(some, met{m, r})
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return some, next, err
}
