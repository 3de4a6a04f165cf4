package cleaner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
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
// records it says so too where they are of a shard of the same month before it, which is
// dropped before it: their rows are asked for where it matters.
func (k *kept) has(seq uint64, r *Record) bool {
	if r.Place != nil {
		return r.Place.Month == k.shard.Month && r.Place.Shard == k.shard.ID
	}
	// A front that lost its end gives sequences again, to records of a later time.
	return r.Row != nil && seq <= k.upTo && schemas.MonthOf(r.Row.Ts) == k.shard.Month && r.Row.Ts <= k.shard.MaxTs
}

// Expire takes what has its row in a closed shard out of the topic's front, and returns once
// nothing of it is left there. All shards of the lane before it must be dropped, or marked. A topic
// whose front does not outlive its rows, as that of timers does, keeps it.
func (c *Cleaner) Expire(ctx context.Context, t *schemas.Topic, s *registry.Shard) error {
	w, k, err := c.keptIn(ctx, t, s)
	if w == nil || err != nil {
		return err
	}
	// Until a walk meets nothing: a cleaner beside this one may put a stub behind the walk, of
	// a record that the walk met. Of one that is gone it is refused.
	for purged := true; purged && err == nil; {
		purged, err = c.expire(ctx, w, k)
	}
	return err
}

// expire walks a lane once, and says whether it met anything.
func (c *Cleaner) expire(ctx context.Context, w *walk, k *kept) (purged bool, err error) {
	for from := uint64(1); ; {
		upTo := map[string]uint64{}
		next, err := c.eachKept(ctx, w, k, from, maxSeen, func(m *streams.Message, _ *Record) { upTo[m.Subject] = m.Sequence })
		if err != nil {
			return purged, err
		}
		out := newLeaving(c, w)
		for _, subject := range slices.Sorted(maps.Keys(upTo)) {
			if err := out.purge(ctx, subject, upTo[subject]); err != nil {
				return purged, err
			}
		}
		if _, err := out.end(ctx); err != nil {
			return purged, err
		}
		purged = purged || len(upTo) > 0
		if next == 0 {
			return purged, nil
		}
		from = next
	}
}

// ErrWhole: a shard's fields cannot be cleared yet, since the front has a record of it whole.
var ErrWhole = errors.New("the front still has it whole")

// CheckCleared returns ErrWhole, with a subject, where the topic's front has a record whose row is
// in a closed shard: not its stub alone.
func (c *Cleaner) CheckCleared(ctx context.Context, t *schemas.Topic, s *registry.Shard) error {
	w, k, err := c.keptIn(ctx, t, s)
	if w == nil || err != nil {
		return err
	}
	for from := uint64(1); ; {
		var whole []met
		next, err := c.eachKept(ctx, w, k, from, maxSeen, func(m *streams.Message, r *Record) {
			if r.Row != nil {
				whole = append(whole, met{m, *r})
			}
		})
		if err != nil {
			return err
		}
		if len(whole) > 0 {
			places, err := c.rows(ctx, w, whole)
			if err != nil {
				return err
			}
			for _, m := range whole {
				if p, ok := places[m.Row.Seq]; ok && p.Shard == s.ID {
					return fmt.Errorf("%w: message %d of %s, %s; it leaves once it is older than the topic's hot_for", ErrWhole, m.Sequence, t.Front(), m.Subject)
				}
			}
		}
		if next == 0 {
			return nil
		}
		from = next
	}
}

// keptIn prepares a walk for what a lane's front has of a shard; nil where it has nothing.
func (c *Cleaner) keptIn(ctx context.Context, t *schemas.Topic, s *registry.Shard) (*walk, *kept, error) {
	kind, ok := cleaned[t.Kind]
	if !ok || kind.Stub == nil {
		return nil, nil, nil
	}
	last, err := streams.DecideLast(ctx, c.js, schemas.StreamShards, s.Ref().Subject())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil, nil // a shard nothing came to
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cleaner: end of %s: %w", s.Name(), err)
	}
	p, err := schemas.ParsePlaced(last.Header)
	if err != nil {
		return nil, nil, fmt.Errorf("cleaner: end of %s: message %d: %w", s.Name(), last.Sequence, err)
	}
	return &walk{topic: t, kind: &kind, lane: s.Lane}, &kept{shard: s, upTo: p.SourceSeq}, nil
}

// eachKept calls f with up to n messages of a shard's, from a sequence on. next is where the rest
// begins, 0 at the end.
func (c *Cleaner) eachKept(ctx context.Context, w *walk, k *kept, from uint64, n int, f func(*streams.Message, *Record)) (next uint64, err error) {
	front := w.topic.Front()
	_, err = streams.Headers(ctx, c.js, front, schemas.SourceFilter(front, w.topic.Name, strconv.Itoa(w.lane)), from, func(m *streams.Message) error {
		r, err := w.kind.Parse(m)
		if err != nil || !schemas.Literal(m.Subject) || !k.has(m.Sequence, &r) {
			return nil
		}
		if n--; n < 0 {
			next = m.Sequence
			return errEnough
		}
		f(m, &r)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return next, err
}
