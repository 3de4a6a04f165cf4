package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// standIns names a stretch of positions (above lo, up to hi) that has as many rows as
// it should, of which some stand in place of others: an event is there twice, or one
// that no frame brought. A client that repeats itself has rows that are the same too:
// the frames tell. differ: the sums of ids say that the events are not the same.
func (v *Verifier) standIns(ctx context.Context, s *ShardReport, e registry.Shard, t streams.Tail, lo, hi uint64, differ bool) error {
	there, err := v.db.Events(ctx, e.Ref(), lo, hi)
	if err != nil {
		return err
	}
	topic, err := v.reg.Topic(ctx, e.Topic)
	if err != nil {
		return err
	}
	from, err := streams.FindFrame(ctx, v.js, t.Ref.Subject(), lo+1, t.Seq)
	if err != nil {
		return err
	}
	next := lo + 1 // position
	var lack []tables.Event
	missing := uint64(0)
	var frames frame.Reader
	err = streams.Gather(ctx, v.js, schemas.StreamShards, t.Ref.Subject(), from, nil, func(msg *streams.Message) (bool, error) {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil || p.Pos > hi || p.Cleared != "" {
			return false, err
		}
		if err := frames.Open(msg.Data, &topic, p.Schema); err != nil {
			return false, fmt.Errorf("verify: position %d of %s: %w", p.Pos, s.Name, err)
		}
		if p.Pos == next {
			next++
		}
		for i := range frames.Rows() {
			ev := tables.Event{ID: frames.ID(i), Ts: frames.Ts(i)}
			if there[ev] > 0 {
				there[ev]--
				continue
			}
			if missing++; len(lack) < maxNamed {
				lack = append(lack, ev)
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	switch whole := next == hi+1 && s.Erased == 0; {
	case whole && missing > 0:
		s.standIn += missing
		s.problem("%s: as many rows as were brought, but %d of the events are missing (%s) and others stand in their place (%s)",
			positions(lo, hi), missing, named(lack), named(surplus(there)))
	case differ:
		s.problem("%s: as many rows as were brought, and not the same events: ids or times are others", positions(lo, hi))
	}
	return nil
}

// maxNamed is how many events a problem names.
const maxNamed = 3

// surplus are some of the events that are left.
func surplus(left map[tables.Event]int) (out []tables.Event) {
	for ev, n := range left {
		if n > 0 && len(out) < maxNamed {
			out = append(out, ev)
		}
	}
	return out
}

// named lists events, at most maxNamed of them.
func named(events []tables.Event) string {
	list := make([]string, len(events))
	for i, ev := range events {
		list[i] = ev.ID.String() + " of " + stamp(ev.Ts)
	}
	if len(events) == maxNamed {
		list = append(list, "…")
	}
	return strings.Join(list, ", ")
}
