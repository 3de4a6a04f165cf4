package router

import (
	"context"
	"fmt"
	"strconv"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// SHARDS may have been restored from an older copy, while ClickHouse has what came after it.
// Nothing in the streams tells, so the router gives positions again. A sink notices, and takes
// the shard out of its lane; the lane's next run seals it and goes on in a new one. The frames
// of EVENTS that ClickHouse lacks are moved by the sink. Records of a front are there to be
// routed again, so that its lane only goes back, or on, behind the last one that is stored.
//
// A lane holds several months, and the shards of some of them may not have forked, or may be
// stored further: records that these have are settled, and the lane passes them over.

// takeForks moves the checkpoint of a front's lane behind the last record that ClickHouse has of
// the shards that forked, and commits that: where the front was restored too, it lacks that message,
// and every part refuses it from then on until a repair (fronts.CheckWhole).
func (l *lane) takeForks(ctx context.Context) error {
	if l.front == "" || l.evaluator.topic == nil {
		return nil
	}
	heads, err := l.cfg.Registry.Heads(ctx, l.topic)
	if err != nil {
		return err
	}
	var forked []registry.Shard
	var months []registry.Head
	for _, h := range heads {
		of := len(forked)
		for id, n := range h.Retired {
			if strconv.Itoa(n) != l.token {
				continue
			}
			s, err := l.cfg.Registry.Shard(ctx, schemas.ShardRef{Topic: l.topic, Month: h.Month, ID: id})
			if err != nil {
				return err
			}
			if s.Fork != nil && s.Fork.Stored.Seq > 0 { // else all of it is stored
				forked = append(forked, s)
			}
		}
		if len(forked) > of {
			months = append(months, h)
		}
	}
	if len(forked) == 0 {
		return nil
	}
	next, err := l.behindForks(ctx, forked)
	if err != nil {
		return err
	}
	l.cp = next
	l.cp.Front, l.cp.Router, l.cp.Epoch = l.front, l.self, l.cp.Epoch+1
	if err := l.commit(ctx, newBatch()); err != nil {
		return err
	}
	for _, h := range months {
		if err := l.seal(ctx, h); err != nil {
			return err
		}
	}
	for _, s := range forked {
		l.cfg.Hooks.fault(l.topic, l.token, fmt.Errorf("router: %w: %s has other frames in ClickHouse than in %s; the lane goes on after record %d, up to which all is stored",
			ErrForked, s.Name(), schemas.StreamShards, l.cp.Source))
	}
	return nil
}

// heldRecords says up to which record a lane's records have their rows, or are in a shard that
// will be stored: by month where a shard of the month forked, and else as the checkpoint was.
type heldRecords struct {
	was    checkpoint.Checkpoint
	forked map[schemas.Month]schemas.Source // the last that ClickHouse has
}

func heldBy(was checkpoint.Checkpoint, forked []registry.Shard) *heldRecords {
	h := &heldRecords{was: was, forked: map[schemas.Month]schemas.Source{}}
	for _, s := range forked {
		if s.Fork.Stored.Seq > h.forked[s.Month].Seq {
			h.forked[s.Month] = s.Fork.Stored
		}
	}
	return h
}

// bounds is between which records the lane decides: all up to the first have their rows, and none
// above the last.
func (h *heldRecords) bounds() (low, high schemas.Source) {
	low, high = h.was.SourceOf(), h.was.SourceOf()
	for _, s := range h.forked {
		if s.Seq < low.Seq {
			low = s
		}
		if s.Seq > high.Seq {
			high = s
		}
	}
	return low, high
}

// has reports whether a record is held.
func (h *heldRecords) has(m schemas.Month, s schemas.Source) bool {
	if upTo, forked := h.forked[m]; forked {
		return s.UpTo(upTo)
	}
	return s.UpTo(h.was.SourceOf()) || h.was.StoredFrames(s, 1) > 0
}

// behindForks is the lane's checkpoint once it went back, or on, for shards that forked.
func (l *lane) behindForks(ctx context.Context, forked []registry.Shard) (checkpoint.Checkpoint, error) {
	next, h := l.cp, heldBy(l.cp, forked)
	for m := range h.forked {
		if err := l.refuseLaterRecords(ctx, m, h.forked[m]); err != nil {
			return next, err
		}
	}
	low, high := h.bounds()
	end := high.Seq
	if n := len(l.cp.StoredRun); n > 0 {
		end = max(end, l.cp.StoredRun[n-1].To)
	}
	passing := next.PassFrom(low)
	err := streams.Gather(ctx, l.js, l.front, l.filter, low.Seq+1, nil, func(msg *streams.Message) (bool, error) {
		if msg.Sequence > end {
			return false, nil
		}
		m := message{subject: msg.Subject, header: msg.Header, data: msg.Data, seq: msg.Sequence, stored: msg.Time}
		if !schemas.IsEvent(m.header, len(m.data)) || !schemas.Indexed(m.subject) {
			return true, nil
		}
		held := m.source().UpTo(l.cp.SourceOf()) // what is not a record has its dead letter
		if _, ts, err := l.evaluator.record(&m); err == nil {
			held = h.has(schemas.MonthOf(ts), m.source())
		}
		if !passing.Take(m.source(), held) {
			return false, fmt.Errorf("%w: %s: more than %d runs of records above %d have their rows; run `almanac verify %s`",
				ErrRolledBack, l.routed, checkpoint.MaxStoredRuns, next.Source, l.topic)
		}
		return true, nil
	})
	if err != nil {
		return next, err
	}
	if !passing.Left() {
		if high.Seq > next.Source {
			next.Stand(high)
		}
		return next, nil
	}
	info, err := streams.Info(ctx, l.js, l.front)
	for m, s := range h.forked {
		if err == nil && info.State.LastSeq < s.Seq {
			err = fmt.Errorf("%w: %s ends at message %d, and ClickHouse has record %d of %s and lacks one below; run `almanac verify %s`",
				ErrRolledBack, l.front, info.State.LastSeq, s.Seq, m, l.topic)
		}
	}
	return next, err
}

// refuseLaterRecords refuses to go back behind a record where another shard of its month, which did not fork,
// has later ones: they would be routed again.
func (l *lane) refuseLaterRecords(ctx context.Context, m schemas.Month, stored schemas.Source) error {
	shards, err := l.cfg.Registry.Shards(ctx, l.topic, m)
	if err != nil {
		return err
	}
	for _, s := range shards {
		if strconv.Itoa(s.ID.Lane()) != l.token || s.Fork != nil || s.Gone() {
			continue
		}
		t, err := l.readTail(ctx, s.Month, s.ID)
		if err != nil {
			return err
		}
		if t.source > stored.Seq && t.era == l.cp.Era {
			return fmt.Errorf("%w: a shard of %s forked, and %s has records above %d, the last that is stored of it; run `almanac verify %s`",
				ErrRolledBack, m, s.Name(), stored.Seq, l.topic)
		}
	}
	return nil
}
