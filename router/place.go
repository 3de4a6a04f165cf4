package router

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
)

// shardFor is the lane's active shard for a message's frames, and why it must be
// left before they go in, or "".
func (l *lane) shardFor(ctx context.Context, b *batch, j *evaluated, at time.Time) (s *shardState, reason string, err error) {
	s = l.active[j.month]
	if s == nil {
		if err := l.entries.take(ctx); err != nil {
			return nil, "", err
		}
		entry, err := l.cfg.Registry.Prepare(ctx, l.evaluator.topic, j.month, j.lane, registry.PointOf(&l.cp), at)
		l.entries.done()
		if err != nil {
			return nil, "", err
		}
		if s, err = l.load(ctx, entry); err != nil {
			return nil, "", err
		}
		if s.tail.pos == 0 {
			if err := l.checkLeft(ctx, entry); err != nil {
				delete(l.active, j.month)
				return nil, "", err
			}
		}
	}
	hi := j.frames[0].MaxTs
	for _, f := range j.frames[1:] {
		hi = max(hi, f.MaxTs)
	}
	top := s.entry.MaxTs
	if t := b.touched[s.entry.ID]; t != nil { // the entry does not cover these yet
		top = max(top, t.hi)
	}
	if s.tail.pos < l.past.Tails[s.entry.ID].Pos {
		return s, "", nil // its frames come again, to the positions that they had
	}
	return s, full(l.evaluator.topic.Rotate, s, top, hi), nil
}

// widen writes the batch's new shards to the registry and widens the others, all in
// one commit: a lane that meets many months at once waits for one disk write and not for each.
func (l *lane) widen(ctx context.Context, b *batch, at time.Time) error {
	if len(b.touched) == 0 {
		return nil
	}
	ranges := make([]registry.Range, 0, len(b.touched))
	for _, t := range b.touched {
		s := t.state
		ranges = append(ranges, registry.Range{Shard: &s.entry, Lo: t.lo, Hi: t.hi, Rows: s.tail.rows, Bytes: s.tail.bytes})
	}
	if err := l.entries.take(ctx); err != nil {
		return err
	}
	defer l.entries.done()
	return l.cfg.Registry.Widen(ctx, at, ranges...)
}

// rotate leaves a full shard for a new one.
func (l *lane) rotate(ctx context.Context, s *shardState, reason string, at time.Time) (*shardState, error) {
	left := s.entry
	left.LeftAt, left.Rows, left.Bytes = s.tail.pos, s.tail.rows, s.tail.bytes // committed: see routeSome
	if err := l.entries.take(ctx); err != nil {
		return nil, err
	}
	entry, err := l.cfg.Registry.Rotate(ctx, left, reason, registry.PointOf(&l.cp), at)
	l.entries.done()
	if err != nil {
		return nil, err
	}
	l.cfg.Crash.at("router.after-rotate")
	l.cfg.Hooks.rotated(s.entry, reason)
	return l.load(ctx, entry)
}

func (l *lane) load(ctx context.Context, entry registry.Shard) (*shardState, error) {
	if entry.Unwritten() { // nothing to read: its id is this run's alone
		s := &shardState{entry: entry}
		l.active[entry.Month] = s
		return s, nil
	}
	if err := l.checkOpen(ctx, entry); err != nil {
		return nil, err
	}
	t, err := l.tailOf(ctx, entry)
	if err != nil {
		return nil, err
	}
	s := &shardState{entry: entry, tail: t}
	l.active[entry.Month] = s
	return s, nil
}
