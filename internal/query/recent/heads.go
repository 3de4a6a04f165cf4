package recent

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// HeadStaleness is how long a reader goes by the head it saw of a shard that got no
// frame since. Heads only rise, but for a ClickHouse that was restored from an older
// copy: after so long its pages have from SHARDS what it lost.
const HeadStaleness = 5 * time.Second

// maxHeads bounds what headCache holds, some 100 bytes each: far more than there
// are active shards of the topics that one process reads.
const maxHeads = 4096

// headCache remembers what ClickHouse was seen to have of shards. A head is not
// asked again while the shard's last frame is the one that was stored; of other shards not
// before snapshotAge. It is safe for concurrent use.
type headCache struct {
	mu   sync.Mutex
	seen map[schemas.Shard]seenHead
}

type seenHead struct {
	schemas.Stored
	whole   bool   // up to the last frame
	tailSeq uint64 // of which in SHARDS
	asked   time.Time
	floor   uint64 // of its entry, when it was last seen to rise
	raised  time.Time
}

// raise hears the floor of a shard's entry. One above what was seen of ClickHouse says
// that more was stored since, and that rows of it may be gone: neither frames nor rows
// up to it can be told by what was asked before.
func (c *headCache) raise(id schemas.Shard, floor uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.seen[id]; ok && floor > max(h.Head, h.floor) {
		c.seen[id] = seenHead{floor: floor, raised: time.Now()}
	}
}

// forget has a shard asked for again.
func (c *headCache) forget(id schemas.Shard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, id)
}

// all is what is remembered of some shards, if it is of each no longer ago than age,
// and whole where that is wanted.
func (c *headCache) all(keys []schemas.ShardRef, now time.Time, age time.Duration, whole bool) (stored map[schemas.Shard]schemas.Stored, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored = make(map[schemas.Shard]schemas.Stored, len(keys))
	for _, k := range keys {
		h, ok := c.seen[k.ID]
		if !ok || now.Sub(h.asked) > age || whole && !h.whole {
			return nil, false
		}
		stored[k.ID] = h.Stored
	}
	return stored, true
}

// moved are the shards whose last frame is another one than remembered; of the
// others into gets what ClickHouse has.
func (c *headCache) moved(keys []schemas.ShardRef, tails map[schemas.Shard]streams.Tail, now time.Time, into map[schemas.Shard]schemas.Stored) (moved []schemas.ShardRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		h := c.seen[k.ID]
		if t := tails[k.ID]; h.whole && now.Sub(h.asked) <= HeadStaleness && t.Seq == h.tailSeq && t.Pos == h.Head {
			into[k.ID] = h.Stored
		} else {
			moved = append(moved, k)
		}
	}
	return moved
}

// remember keeps what ClickHouse said of shards, those without rows too.
func (c *headCache) remember(keys []schemas.ShardRef, stored map[schemas.Shard]schemas.Stored, tails map[schemas.Shard]streams.Tail, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || len(c.seen)+len(keys) > maxHeads {
		c.seen = map[schemas.Shard]seenHead{}
	}
	for _, k := range keys {
		s, t, h := stored[k.ID], tails[k.ID], c.seen[k.ID]
		if !asked.Before(h.raised) {
			c.seen[k.ID] = seenHead{s, t.Pos > 0 && t.Pos == s.Head, t.Seq, asked, h.floor, h.raised}
		}
	}
}

// headsOf is what ClickHouse has of shards, asked for no longer ago than age, and their
// last frames in SHARDS, asked for when it says.
func (s *Snapshot) headsOf(ctx context.Context, keys []schemas.ShardRef, age time.Duration) (stored map[schemas.Shard]schemas.Stored, tails map[schemas.Shard]streams.Tail, asked time.Time, err error) {
	now, heads := time.Now(), s.x.heads
	tails = map[schemas.Shard]streams.Tail{}
	if stored, ok := heads.all(keys, now, age, false); ok {
		asked, err = s.lastFrames(ctx, keys, tails)
		return stored, tails, asked, err
	}
	if _, ok := heads.all(keys, now, HeadStaleness, true); !ok {
		g, gctx := fanout.WithContext(ctx)
		g.Go(func() (err error) { stored, err = s.x.store.StoredOf(gctx, s.topic, keys); return err })
		g.Go(func() (err error) { asked, err = s.lastFrames(gctx, keys, tails); return err })
		if err = g.Wait(); err == nil {
			heads.remember(keys, stored, tails, now)
		}
		return stored, tails, asked, err
	}
	if asked, err = s.lastFrames(ctx, keys, tails); err != nil {
		return nil, nil, asked, err
	}
	stored = make(map[schemas.Shard]schemas.Stored, len(keys))
	moved := heads.moved(keys, tails, now, stored)
	if len(moved) == 0 {
		return stored, tails, asked, nil
	}
	now = time.Now()
	more, err := s.x.store.StoredOf(ctx, s.topic, moved)
	if err == nil {
		heads.remember(moved, more, tails, now)
		maps.Copy(stored, more)
	}
	return stored, tails, asked, err
}
