package router

import (
	"context"
	"fmt"
	"strconv"

	"github.com/almanac-events/almanac/schemas"
)

// SHARDS may have been restored from an older copy, while ClickHouse has what came after it.
// Nothing in the streams tells, so the router gives positions again. A sink notices, and takes
// the shard out of its lane; the lane's next run seals it and goes on in a new one. The frames
// of EVENTS that ClickHouse lacks are moved by the sink. Records of a front are there to be
// routed again, so that its lane only goes back, or on, behind the last one that is stored.

// takeForks moves the checkpoint of a front's lane behind the last record that ClickHouse has of
// a shard that forked, and commits that: where the front was restored too, it lacks that message,
// and every part refuses it from then on until a repair (fronts.CheckWhole).
func (l *lane) takeForks(ctx context.Context) error {
	if l.front == "" || l.judge.topic == nil {
		return nil
	}
	heads, err := l.cfg.Registry.Heads(ctx, l.topic)
	if err != nil {
		return err
	}
	for _, h := range heads {
		for id, n := range h.Retired {
			if strconv.Itoa(n) != l.token {
				continue
			}
			s, err := l.cfg.Registry.Shard(ctx, schemas.ShardRef{Topic: l.topic, Month: h.Month, ID: id})
			if err != nil {
				return err
			}
			if s.Fork == nil || s.Fork.Stored.Seq == 0 {
				continue // all of it is stored
			}
			if err := l.alone(ctx, h.Month, id, s.Fork.Stored.Seq); err != nil {
				return err
			}
			l.cp.Source, l.cp.Stored, l.cp.Digest, l.cp.At = s.Fork.Stored.Seq, s.Fork.Stored.Stored, "", 0
			l.cp.Front, l.cp.Router, l.cp.Epoch = l.front, l.self, l.cp.Epoch+1
			if err := l.commit(ctx, newBatch()); err != nil {
				return err
			}
			if err := l.seal(ctx, h); err != nil {
				return err
			}
			l.cfg.Hooks.fault(l.topic, l.token, fmt.Errorf("router: %w: %s has other frames in ClickHouse than in %s; the lane goes on behind record %d, the last that is stored",
				ErrForked, s.Name(), schemas.StreamShards, s.Fork.Stored.Seq))
		}
	}
	return nil
}

// alone refuses to go back behind a record where another shard of the lane has later ones: they
// would be routed again.
func (l *lane) alone(ctx context.Context, m schemas.Month, forked schemas.Shard, seq uint64) error {
	shards, err := l.cfg.Registry.Shards(ctx, l.topic, 0)
	if err != nil {
		return err
	}
	for _, s := range shards {
		if strconv.Itoa(s.Lane) != l.token || s.ID == forked || s.Gone() {
			continue
		}
		t, err := l.readTail(ctx, s.Month, s.ID)
		if err != nil {
			return err
		}
		if t.source > seq && t.era == l.cp.Era {
			return fmt.Errorf("%w: shard %s of %s forked, and %s has records above %d, the last that is stored of it; run `almanac verify %s`",
				ErrRolledBack, forked, m, s.Name(), seq, l.topic)
		}
	}
	return nil
}
