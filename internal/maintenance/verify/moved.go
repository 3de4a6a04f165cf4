package verify

import (
	"context"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// A shard may have the events that its frames brought, each once, and some of them at other positions than
// their frames': sums of ids do not tell. So the sum of id times position is compared as well. The frames' headers tell
// it, since p·(S(p)−S(p−1)) summed up to H is H·S(H) − S(1) − … − S(H−1), where S(p) is the sum of the ids up to p. Where frames
// below the first are gone, rows below it count as if they were at it.

// moved reports whether rows of a shard, which has the events that its frames brought, may stand at
// other positions than theirs. Where the headers do not tell, it says so, and the positions are compared one by one.
func (v *Verifier) moved(ctx context.Context, a *ahead, s *ShardReport, e registry.Shard, t streams.Tail, h *held, gone []ledger.Cut) (bool, error) {
	if h == nil || s.Head < h.first || s.Head > h.last {
		return false, nil // no frame tells of positions
	}
	above, whole, err := v.sumsFrom(ctx, s, t, h)
	if err != nil {
		return false, err
	}
	want, known := h.weighted(s.Head, s.ids, above, gone)
	if !known || !whole {
		return true, nil
	}
	have, err := a.weigh(ctx, tables.End{Ref: e.Ref(), Pos: s.Head, Least: h.first})
	if err != nil || have.IDs != s.ids-ledger.SumIDs(gone, s.Head) {
		return false, err // other rows than those that were counted, meanwhile: the next run tells
	}
	return have.Weighted != want, nil
}

// sumsFrom adds up the ids' sums of a shard's frames from the head on, as their headers say. whole is false where some of
// them are not there any more.
func (v *Verifier) sumsFrom(ctx context.Context, s *ShardReport, t streams.Tail, h *held) (sums uint64, whole bool, err error) {
	if s.Head == h.last {
		return s.ids, true, nil
	}
	from, err := streams.FindFrame(ctx, v.js, t.Ref.Subject(), s.Head, t.Seq)
	if err != nil {
		return 0, false, err
	}
	next := s.Head
	_, err = streams.Headers(ctx, v.js, schemas.StreamShards, t.Ref.Subject(), from, func(msg *streams.Message) error {
		if p, err := schemas.ParsePlaced(msg.Header); err == nil && p.Pos == next && p.Pos <= h.last {
			next, sums = next+1, sums+p.ShardIDs
		}
		return nil
	})
	return sums, next == h.last+1, err
}

// weighted is the sum of id times position that the rows up to the head must have, where ids is the sum of their ids
// before erasures, and above the frames' sums from the head on. It is not known where frames are missing among those that
// are held, and where cuts were joined.
func (h *held) weighted(head, ids, above uint64, gone []ledger.Cut) (sum uint64, known bool) {
	if len(h.gaps) > 0 {
		return 0, false
	}
	sum = head*ids - (h.sums - above)
	for _, c := range gone {
		if c.Pos > head {
			continue
		}
		if c.First() < c.Pos && c.Pos > h.first {
			return 0, false
		}
		sum -= max(c.Pos, h.first) * c.IDs
	}
	return sum, true
}
