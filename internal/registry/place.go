package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Range is a shard to which frames are about to be added, and the range of their
// events (unix ns). Rows and Bytes are what the shard has with them.
type Range struct {
	Shard       *Shard
	Lo, Hi      int64
	Rows, Bytes uint64
}

// maxWidened bounds the shards of one commit. Each is at most two messages of an
// atomic batch, of which a server takes 1,000.
const maxWidened = 200

// Prepare returns the active shard of a lane's month. Where there is none, it
// returns a new one that is not written yet: Widen writes it, with the range of its first
// frames. So many new months cost one commit. from is the point at which the lane is, and at the
// stored time of the event that asks.
func (r *Registry) Prepare(ctx context.Context, t *schemas.Topic, m schemas.Month, lane int, from Point, at time.Time) (Shard, error) {
	h, err := r.Head(ctx, t.Name, m)
	if err == nil {
		if id, ok := h.Active[lane]; ok {
			return r.Shard(ctx, schemas.ShardRef{Topic: t.Name, Month: m, ID: id})
		}
	} else if !errors.Is(err, ErrNotFound) {
		return Shard{}, err
	} else {
		h = Head{Topic: t.Name, Month: m, rev: h.rev}
	}
	return h.next(schemas.NewShard(lane), from, at), nil
}

// next makes a shard its lane's active one in a copy of the head entry, which the
// shard keeps until both are written.
func (h Head) next(id schemas.Shard, from Point, at time.Time) Shard {
	lane := id.Lane()
	if h.Active = maps.Clone(h.Active); h.Active == nil {
		h.Active = map[int]schemas.Shard{}
	}
	h.Active[lane] = id
	s := Shard{
		Topic: h.Topic, Month: h.Month, ID: id, Order: h.Order(lane, from),
		CreatedAt: at.UTC(), LastWriteAt: at.UTC(), Status: Active,
		MinTs: h.Month.End(), MaxTs: h.Month.Start() - 1, // empty: overlaps nothing
	}
	h.Made(&s)
	s.unwritten = &h
	return s
}

// Unwritten reports whether Prepare made the shard and Widen did not write it yet.
// No other process knows its id, so nothing was ever added to it.
func (s *Shard) Unwritten() bool { return s.unwritten != nil }

// Place returns the active shard of a lane's month; the first call makes it. from and at are as
// for Prepare.
func (r *Registry) Place(ctx context.Context, t *schemas.Topic, m schemas.Month, lane int, from Point, at time.Time) (Shard, error) {
	for {
		s, err := r.Prepare(ctx, t, m, lane, from, at)
		if err != nil || !s.Unwritten() {
			return s, err
		}
		err = r.Widen(ctx, at, Range{Shard: &s, Lo: math.MaxInt64, Hi: math.MinInt64})
		if err == nil || !errors.Is(err, ErrConflict) {
			return s, err
		}
	}
}

// Widen writes the shards that Prepare made, and makes each shard's range cover Lo
// to Hi. It must have succeeded before frames with such events are published. at is the stored
// time of their last message. After an error it is unknown which of the shards it widened.
func (r *Registry) Widen(ctx context.Context, at time.Time, all ...Range) error {
	for some := range slices.Chunk(all, maxWidened) {
		if err := r.widen(ctx, at, some); err != nil {
			return err
		}
	}
	return nil
}

// widen widens shards in one commit, and in another when something changed meanwhile.
func (r *Registry) widen(ctx context.Context, at time.Time, some []Range) error {
	for {
		var changes []*change
		next := make([]Shard, len(some))
		written := make([]*change, len(some))
		for i, c := range some {
			var head *Head
			var changed bool
			if next[i], head, changed = c.next(at); !changed {
				continue
			}
			written[i] = &change{key: next[i].key(), rev: next[i].rev, v: &next[i]}
			changes = append(changes, written[i])
			if head != nil {
				changes = append(changes, &change{key: head.key(), rev: head.rev, v: head})
			}
		}
		if len(changes) == 0 {
			return nil
		}
		err := r.commit(ctx, changes...)
		if err == nil {
			for i, c := range some {
				if written[i] != nil {
					next[i].rev = written[i].rev
					*c.Shard = next[i]
				}
			}
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
		for _, c := range some {
			if err := r.refresh(ctx, c.Shard); err != nil {
				return err
			}
		}
	}
}

// next returns the shard's entry as it must become, the head entry that is written
// with it if the shard is new, and whether anything changes.
func (c *Range) next(at time.Time) (s Shard, head *Head, changed bool) {
	s = *c.Shard
	head, s.unwritten = s.unwritten, nil
	if c.Lo >= s.MinTs && c.Hi <= s.MaxTs {
		return s, head, head != nil
	}
	s.MinTs, s.MaxTs = widened(s.MinTs, s.MaxTs, c.Lo, c.Hi, s.Month)
	s.Rows, s.Bytes, s.LastWriteAt = c.Rows, c.Bytes, at.UTC()
	return s, head, true
}

// refresh reads again what a commit depends on, after a conflict. A shard that is
// no longer the caller's to write to is a conflict: another router fenced it off.
func (r *Registry) refresh(ctx context.Context, s *Shard) error {
	if !s.Unwritten() {
		now, err := r.Shard(ctx, s.Ref())
		if err != nil {
			return err
		}
		if *s = now; s.Status != Active {
			return fmt.Errorf("%w: %s is %s", ErrConflict, s.Name(), s.Status)
		}
		return nil
	}
	was := s.unwritten
	h, err := r.Head(ctx, s.Topic, s.Month)
	switch {
	case errors.Is(err, ErrNotFound) && was.rev == 0:
		return nil
	case err != nil:
		return err
	}
	if id, ok := h.Active[s.ID.Lane()]; ok {
		return fmt.Errorf("%w: lane %d of %s %s got shard %s meanwhile", ErrConflict, s.ID.Lane(), s.Topic, s.Month, id)
	}
	*s = h.next(s.ID, s.Order.Point, s.CreatedAt)
	return nil
}

// widenStep rounds a shard's range outwards, so that events in time order cost
// one registry write a minute and not one a batch.
const widenStep = int64(time.Minute)

// widened is the range [min, max] grown to cover [lo, hi], its moved ends
// rounded outwards within the month.
func widened(minTs, maxTs, lo, hi int64, m schemas.Month) (int64, int64) {
	if lo < minTs {
		minTs = max(lo-lo%widenStep, m.Start())
	}
	if hi > maxTs {
		maxTs = min(hi-hi%widenStep+widenStep-1, m.End()-1)
	}
	return minTs, maxTs
}
