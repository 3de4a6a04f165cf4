package router

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// A checkpoint lies in SHARDS behind the frames it speaks of, so it goes with them when
// SHARDS loses its end. EVENTS still has what it spoke of, and the lane routes it again
// to the same positions. Where EVENTS lost its end too, nothing in either stream tells
// that there was more: ClickHouse may have stored it, and positions would be given a
// second time. So the router keeps a copy of each checkpoint in the registry, which lies
// in files of its own, and a lane whose copy knows more than both streams waits for a
// repair.

// copies are the checkpoints that changed since they were last kept.
type copies struct {
	mu      sync.Mutex
	changed map[laneID]checkpoint.Checkpoint
	kept    map[laneID]schemas.Source // era and source of what was noted last
}

func newCopies() *copies {
	return &copies{changed: map[laneID]checkpoint.Checkpoint{}, kept: map[laneID]schemas.Source{}}
}

// note takes a checkpoint that was committed.
func (c *copies) note(id laneID, cp *checkpoint.Checkpoint) {
	at := schemas.Source{Seq: cp.Source, Stored: int64(cp.Era)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cp.Source > 0 && c.kept[id] != at {
		c.kept[id], c.changed[id] = at, cp.Copy()
	}
}

// take returns what changed, and forgets it.
func (c *copies) take() (out []registry.LaneCopy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, cp := range c.changed {
		out = append(out, registry.LaneCopy{Topic: id.topic, Lane: id.lane, Checkpoint: cp})
	}
	clear(c.changed)
	return out
}

// again puts back what could not be kept, where nothing newer came.
func (c *copies) again(failed []registry.LaneCopy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range failed {
		id := laneID{f.Topic, f.Lane}
		if _, newer := c.changed[id]; !newer {
			c.changed[id] = f.Checkpoint
		}
	}
}

// lastCopies bounds the time of keeping the last copies when the router ends.
const lastCopies = 2 * time.Second

// keepLast keeps what changed since, once the lanes have ended with ctx.
func (r *Router) keepLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCopies)
	defer cancel()
	_ = r.cfg.Registry.SaveCopies(ctx, r.copies.take())
}

// keepCopies keeps what changed every CopyEvery until ctx ends.
func (r *Router) keepCopies(ctx context.Context) {
	for range backoff.Ticks(ctx, r.cfg.CopyEvery) {
		changed := r.copies.take()
		if len(changed) == 0 {
			continue
		}
		keeping, end := r.outages.Bound(ctx)
		err := r.cfg.Registry.SaveCopies(keeping, changed)
		end()
		if err != nil && ctx.Err() == nil {
			r.copies.again(changed)
			r.cfg.Hooks.fault("", "", fmt.Errorf("router: keeping checkpoints in the registry: %w", err))
		}
	}
}

// forgotten refuses a checkpoint that is older than its copy in the registry, where
// EVENTS does not hold what the copy names either, or let go of some of it. Where it has all,
// what SHARDS lost is routed again: to the same shards, though their limits may be others since.
func (l *lane) forgotten(ctx context.Context) error {
	if l.sweeping || l.evaluator.topic == nil {
		return nil
	}
	known, err := l.cfg.Registry.Copy(ctx, l.topic, l.token)
	if err != nil || !l.cp.Forgets(&known) {
		return err
	}
	why, err := streams.Misfit(ctx, l.js, l.filter, &known)
	if err == nil && why == "" {
		why, err = streams.LetGo(ctx, l.js, l.filter, &l.cp, &known)
	}
	if err != nil {
		return err
	}
	if why == "" {
		if known.Era == l.cp.Era {
			l.past = known
		}
		return nil
	}
	return fmt.Errorf("%w: %s; run `almanac repair %s`", ErrRolledBack, l.cp.BothLost(&known, why), l.topic)
}
