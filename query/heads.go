package query

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// HeadStaleness is how long a reader goes by the head it saw of a shard that got no
// frame since. Heads only rise, but for a ClickHouse that was put back to an older
// copy: after so long its pages have from SHARDS what it lost.
const HeadStaleness = 5 * time.Second

// maxHeads bounds what headCache holds, some 100 bytes each: far more than there
// are active shards of the topics that one process reads.
const maxHeads = 4096

// headCache remembers what ClickHouse has of shards whose last frame is stored, so
// that nobody asks again while that frame is their last. It is safe for concurrent
// use.
type headCache struct {
	mu    sync.Mutex
	whole map[schemas.Shard]wholeShard
}

type wholeShard struct {
	tables.Stored
	tailSeq uint64 // of its last frame in SHARDS
	asked   time.Time
}

// knows says whether everything about some shards is remembered.
func (c *headCache) knows(keys []tables.ShardKey, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		if w, ok := c.whole[k.Shard]; !ok || now.Sub(w.asked) > HeadStaleness {
			return false
		}
	}
	return true
}

// moved are the shards whose last frame is another one than remembered; of the
// others into gets what ClickHouse has.
func (c *headCache) moved(keys []tables.ShardKey, tails map[schemas.Shard]tail, now time.Time, into map[schemas.Shard]tables.Stored) (moved []tables.ShardKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		w, ok := c.whole[k.Shard]
		if t := tails[k.Shard]; ok && now.Sub(w.asked) <= HeadStaleness && t.seq == w.tailSeq && t.Pos == w.Head {
			into[k.Shard] = w.Stored
		} else {
			moved = append(moved, k)
		}
	}
	return moved
}

// remember keeps those of the shards that are stored up to their last frame.
func (c *headCache) remember(stored map[schemas.Shard]tables.Stored, tails map[schemas.Shard]tail, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.whole == nil || len(c.whole)+len(stored) > maxHeads {
		c.whole = map[schemas.Shard]wholeShard{}
	}
	for id, s := range stored {
		if t, ok := tails[id]; ok && t.Pos == s.Head {
			c.whole[id] = wholeShard{s, t.seq, asked}
		} else {
			delete(c.whole, id)
		}
	}
}

// heads is what ClickHouse has of shards, and their last frames in SHARDS, asked for
// when it says.
func (r *Reader) heads(ctx context.Context, p *plan, keys []tables.ShardKey, subjects []string) (stored map[schemas.Shard]tables.Stored, tails map[schemas.Shard]tail, asked time.Time, err error) {
	now := time.Now()
	tails = map[schemas.Shard]tail{}
	if !r.whole.knows(keys, now) {
		g, gctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) { stored, err = r.db.StoredOf(gctx, p.topic.Name, keys); return err })
		g.Go(func() (err error) { asked, err = r.lastFrames(gctx, p, subjects, tails); return err })
		if err = g.Wait(); err == nil {
			r.whole.remember(stored, tails, now)
		}
		return stored, tails, asked, err
	}
	if asked, err = r.lastFrames(ctx, p, subjects, tails); err != nil {
		return nil, nil, asked, err
	}
	stored = make(map[schemas.Shard]tables.Stored, len(keys))
	moved := r.whole.moved(keys, tails, now, stored)
	if len(moved) == 0 {
		return stored, tails, asked, nil
	}
	now = time.Now()
	more, err := r.db.StoredOf(ctx, p.topic.Name, moved)
	if err == nil {
		r.whole.remember(more, tails, now)
		maps.Copy(stored, more)
	}
	return stored, tails, asked, err
}
