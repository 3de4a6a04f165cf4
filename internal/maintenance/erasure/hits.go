package erasure

import (
	"context"
	"errors"
	"slices"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// hit is a message with events of an erasure.
type hit struct {
	msg     *streams.Message
	frame   schemas.Frame
	matched uint64
}

// reach says of a message whether it is opened, and whether another that is may follow it under the same filter.
type reach func(*streams.Message) (opened, more bool)

// inShard opens the frames of one shard, up to a position, that came from up to the fence. A shard is of one lane, so
// its frames follow each other as EVENTS stored them. Those of a topic do not: one lane may be routed above the
// fence before another comes to it. A message whose headers cannot be read does not say where it stands.
func inShard(e *ledger.Erasure, upTo uint64) reach {
	return func(msg *streams.Message) (opened, more bool) {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil {
			return true, true
		}
		return p.Pos <= upTo && e.Means(p.Source()), p.Pos <= upTo && !beyond(p.Source(), e.UpTo())
	}
}

// inEventsUpTo opens the messages of EVENTS up to the fence.
func inEventsUpTo(e *ledger.Erasure) reach {
	return func(msg *streams.Message) (opened, more bool) {
		return e.Means(inEvents(msg)), !beyond(inEvents(msg), e.UpTo())
	}
}

// beyond reports whether a message, and each that was stored after it, came after a fence. Its sequence or its time alone
// does not tell: a stream that was cut gives lower sequences after it, and a clock that was set back earlier times.
func beyond(s, fence schemas.Source) bool {
	return s.Seq > fence.Seq && (s.Stored == 0 || fence.Stored == 0 || s.Stored > fence.Stored)
}

// hits reads a stream's messages under a filter as far as within says, and calls f
// with those that hold events of the erasure, some at a time.
func (x *Eraser) hits(ctx context.Context, e *ledger.Erasure, t *schemas.Topic, stream, filter string, within reach, f func([]hit) error) error {
	m := &matcher{x: x, e: e, topic: t}
	var open []hit
	owners := map[string][]int{} // id: indices in open; a frame may have come twice
	flush := func() error {
		if err := m.flush(ctx); err != nil {
			return err
		}
		slices.Sort(m.ids)
		for _, id := range slices.Compact(m.ids) {
			for _, i := range owners[id] {
				open[i].matched++
			}
		}
		found := slices.DeleteFunc(open, func(h hit) bool { return h.matched == 0 })
		err := f(found)
		open, m.ids = nil, nil
		clear(owners)
		return err
	}
	err := streams.Gather(ctx, x.js, stream, filter, 1, nil, func(msg *streams.Message) (bool, error) {
		opened, more := within(msg)
		frame, err := schemas.ParseFrame(msg.Header)
		if !opened || err != nil || len(msg.Data) == 0 || frame.MaxTs < e.From || frame.MinTs > e.To {
			return more, nil
		}
		if m.size >= maxMatchBytes || frame.Schema != m.schema {
			if err := flush(); err != nil {
				return false, err
			}
		}
		if err := m.add(ctx, frame, msg.Data); err != nil {
			return more, nil // no frame the router would take
		}
		for i := range m.reader.Rows() {
			id := m.reader.ID(i).String()
			owners[id] = append(owners[id], len(open))
		}
		open = append(open, hit{msg: msg, frame: frame})
		return more, nil
	})
	return errors.Join(err, flush())
}
