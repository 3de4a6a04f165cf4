package query

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// settlePoll is how often WaitStored looks: well below what a sink waits for
// company.
const settlePoll = 25 * time.Millisecond

// WaitStored waits until everything that was accepted before the call can be
// selected in SQL, at most for within, and returns how many of those events
// cannot yet: 0 but for a slow or stopped router or sink.
func (r *Reader) WaitStored(ctx context.Context, within time.Duration) (pending uint64, err error) {
	info, err := r.events.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("query: %s: %w", schemas.StreamEvents, err)
	}
	topics, err := r.topicNames(ctx)
	if err != nil {
		return 0, err
	}
	return r.WaitStoredUpTo(ctx, topics, info.State.LastSeq, within, nil)
}

func (r *Reader) topicNames(ctx context.Context) ([]string, error) {
	topics, err := r.reg.Topics(ctx)
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	return names, err
}

// WaitStoredUpTo waits until what some topics have up to a sequence of EVENTS can
// be selected in SQL, at most for within, however much comes behind it. It returns
// how many of those events cannot yet; heard, when not nil, is told at every look.
func (r *Reader) WaitStoredUpTo(ctx context.Context, topics []string, upTo uint64, within time.Duration, heard func(pending uint64)) (pending uint64, err error) {
	deadline := time.Now().Add(within)
	tick := time.NewTicker(settlePoll)
	defer tick.Stop()
	var tails []tail // once everything is routed: what comes later is not waited for
	for asked := (time.Time{}); ; {
		if within > 0 && time.Since(asked) > waitingEvery {
			asked = time.Now()
			r.sayWaiting(topics)
		}
		if tails == nil {
			if pending, err = r.unrouted(ctx, topics, upTo); err != nil {
				return pending, err
			}
			if pending == 0 {
				for _, t := range topics {
					more, err := r.tails(ctx, schemas.ShardsFilter(t), nil)
					if err != nil {
						return 0, err
					}
					tails = append(tails, more...)
				}
			}
		}
		if pending == 0 || len(tails) > 0 {
			if pending, tails, err = r.unstored(ctx, tails); err != nil {
				return pending, err
			}
		}
		if heard != nil {
			heard(pending)
		}
		if pending == 0 || time.Now().After(deadline) {
			return pending, nil
		}
		select {
		case <-ctx.Done():
			return pending, ctx.Err()
		case <-tick.C:
		}
	}
}

// waitingEvery is how often a reader that waits says so: a third of what one word
// counts.
const waitingEvery = time.Second

// sayWaiting tells sinks that a reader waits until SQL has what the topics were given, so
// that they do not take the time that sql_fresh allows. What becomes of it does not
// matter: without it the reader waits for longer.
func (r *Reader) sayWaiting(topics []string) {
	for _, t := range topics {
		_ = r.js.Conn().Publish(schemas.WaitingSubject(t), nil)
	}
}

// unrouted counts the events some topics have in EVENTS up to a sequence that no
// router dealt with yet.
func (r *Reader) unrouted(ctx context.Context, topics []string, upTo uint64) (uint64, error) {
	var n uint64
	for _, name := range topics {
		t, err := r.reg.Topic(ctx, name)
		if err != nil {
			return 0, err
		}
		routed, err := r.checkpoints(ctx, t.Name)
		if err != nil {
			return 0, err
		}
		more, err := r.waiting(ctx, t.Name, t.Lanes, routed, nil, upTo)
		if err != nil {
			return 0, err
		}
		if more == 0 { // by the numbers of checkpoints, which EVENTS may not fit
			misfits, err := r.misfits(ctx, t.Name, routed)
			if err != nil {
				return 0, err
			}
			if len(misfits) > 0 {
				if more, err = r.waiting(ctx, t.Name, t.Lanes, routed, misfits, upTo); err != nil {
					return 0, err
				}
			}
		}
		n += more
	}
	return n, nil
}

// unstored keeps the tails that are not stored yet and bounds their rows from
// above: a shard of which nothing is known counts whole.
func (r *Reader) unstored(ctx context.Context, tails []tail) (n uint64, left []tail, err error) {
	heads := map[string]map[schemas.Shard]uint64{}
	for _, t := range tails {
		if heads[t.topic] == nil {
			if heads[t.topic], err = r.db.Heads(ctx, t.topic); err != nil {
				return 0, nil, err
			}
		}
		head := heads[t.topic][t.shard]
		if head >= t.Pos {
			continue
		}
		entry, err := r.reg.Shard(ctx, t.topic, t.month, t.shard)
		if err != nil {
			return 0, nil, err
		}
		if max(head, entry.Floor) < t.Pos {
			left = append(left, t)
			n += t.ShardRows * (t.Pos - head) / t.Pos
		}
	}
	return n, left, nil
}
