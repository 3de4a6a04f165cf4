package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// MaxCachedShards bounds the entries that a ShardCache holds, some 40 MB: a month
// of the largest topic that is planned for. A month with more is read whole each
// time.
const MaxCachedShards = 100_000

// ShardCache answers which shards of a month overlap a range, for a process that
// asks often. Each answer is as the bucket stood at a time that the caller names, or
// later: one small request brings what changed since the last, where that is older.
// It is safe for concurrent use.
//
// It goes by the bucket's sequences: an entry that changes gets a new one, above
// all others, in the same step in which it loses the old. So a reader that continues from
// a message that it has seen misses nothing. That message comes again with every
// answer, unless its key was written again. When neither is so, the bucket was
// restored or created again, and all is read again.
type ShardCache struct {
	reg *Registry

	mu     sync.Mutex
	months map[topicMonth]*cachedMonth
	held   int
	clock  uint64 // counts the questions, to tell which month was asked for least lately
}

type topicMonth struct {
	topic string
	month schemas.Month
}

type cachedMonth struct {
	shards map[string]cachedShard // by subject
	seen   anchor
	begun  time.Time // when the last reading that brought it up to date began
	used   uint64
}

// cachedShard is an entry, or that it was taken away at rev.
type cachedShard struct {
	Shard
	gone bool
}

// anchor is a message of the bucket up to which everything was seen.
type anchor struct {
	seq     uint64
	subject string
	at      time.Time
}

// NewShardCache makes a cache that has read nothing yet.
func NewShardCache(r *Registry) *ShardCache {
	return &ShardCache{reg: r, months: map[topicMonth]*cachedMonth{}}
}

// Overlapping are the shards of a topic's month that may have events between from
// and to (unix ns, inclusive), in no order, as the bucket stood after since, or later.
func (c *ShardCache) Overlapping(ctx context.Context, topic string, m schemas.Month, from, to int64, since time.Time) ([]Shard, error) {
	key := topicMonth{topic, m}
	c.mu.Lock()
	var seen anchor
	if known := c.months[key]; known != nil {
		seen = known.seen
		if known.begun.After(since) {
			defer c.mu.Unlock()
			c.use(known)
			return overlapping(known.shards, from, to), nil
		}
	}
	c.mu.Unlock()
	begun := time.Now()
	if seen.seq > 0 {
		read, whole, err := c.since(ctx, key, seen)
		if err != nil {
			return nil, err
		}
		if whole {
			if shards, ok := c.take(key, seen, read, from, to, begun); ok {
				return shards, nil
			}
		}
	}
	read, err := c.all(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.put(key, read, from, to, begun), nil
}

// readMonth is what was read of a month's entries.
type readMonth struct {
	shards map[string]cachedShard
	seen   anchor
}

func (r *readMonth) add(msg *streams.Message) error {
	s := cachedShard{gone: len(msg.Data) == 0}
	if !s.gone {
		if err := json.Unmarshal(msg.Data, &s.Shard); err != nil {
			return unreadable(msg.Subject[len(schemas.KVSubject("")):], err)
		}
	}
	s.rev = msg.Sequence
	r.shards[msg.Subject] = s
	return nil
}

// since reads the entries that were written after an anchor, the last entry that the cache
// had read. whole reports that the anchor is still in the bucket, or was overwritten by a
// later entry of its key: then nothing else changed. Without it the bucket may have been
// restored from an older copy, and all must be read.
func (c *ShardCache) since(ctx context.Context, key topicMonth, from anchor) (read readMonth, whole bool, err error) {
	read = readMonth{shards: map[string]cachedShard{}, seen: from}
	filter := schemas.KVSubject(schemas.MonthShardKeys(key.topic, key.month))
	err = streams.Gather(ctx, c.reg.js, schemas.KVStream, filter, from.seq, nil, func(msg *streams.Message) (bool, error) {
		if msg.Sequence == from.seq {
			whole = msg.Subject == from.subject && msg.Time.Equal(from.at)
			return whole, nil
		}
		whole = whole || msg.Subject == from.subject
		read.seen = anchor{msg.Sequence, msg.Subject, msg.Time}
		return true, read.add(msg)
	})
	return read, whole, err
}

// all reads every entry of a month. What is written meanwhile may be missing, so
// the anchor is the last of those that were there before.
func (c *ShardCache) all(ctx context.Context, key topicMonth) (readMonth, error) {
	read := readMonth{shards: map[string]cachedShard{}}
	s, err := streams.Open(ctx, c.reg.js, schemas.KVStream)
	if err != nil {
		return read, fmt.Errorf("registry: stream %s: %w", schemas.KVStream, err)
	}
	before := s.CachedInfo().State.LastSeq
	filter := schemas.MonthShardKeys(key.topic, key.month)
	err = streams.Latest(ctx, c.reg.js, schemas.KVStream, schemas.KVSubject(filter), func(msg *streams.Message) error {
		if msg.Sequence <= before && msg.Sequence > read.seen.seq {
			read.seen = anchor{msg.Sequence, msg.Subject, msg.Time}
		}
		return read.add(msg)
	})
	if err != nil {
		return read, fmt.Errorf("registry: listing %s: %w", filter, err)
	}
	return read, nil
}

// take joins what was read behind an anchor with what is known. ok is false when
// that went meanwhile.
func (c *ShardCache) take(key topicMonth, from anchor, read readMonth, lo, hi int64, begun time.Time) (out []Shard, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.months[key]
	if known == nil || known.seen.seq < from.seq {
		return nil, false
	}
	for subject, s := range read.shards {
		old, had := known.shards[subject]
		if had && old.rev >= s.rev {
			continue // another question brought a newer one
		}
		if !had {
			c.held++
		}
		known.shards[subject] = s
	}
	if read.seen.seq > known.seen.seq {
		known.seen = read.seen
	}
	if begun.After(known.begun) {
		known.begun = begun
	}
	out = overlapping(known.shards, lo, hi)
	c.use(known)
	return out, true
}

// put keeps a month that was read whole, where there is room.
func (c *ShardCache) put(key topicMonth, read readMonth, lo, hi int64, begun time.Time) []Shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.months[key]; old != nil {
		c.held -= len(old.shards)
		delete(c.months, key)
	}
	if read.seen.seq > 0 && len(read.shards) <= MaxCachedShards {
		known := &cachedMonth{shards: read.shards, seen: read.seen, begun: begun}
		c.months[key] = known
		c.held += len(known.shards)
		c.use(known)
	}
	return overlapping(read.shards, lo, hi)
}

// use notes a question, and makes room by giving up the months that were asked for
// least lately.
func (c *ShardCache) use(known *cachedMonth) {
	c.clock++
	known.used = c.clock
	for c.held > MaxCachedShards {
		var oldest topicMonth
		for key, m := range c.months {
			if o := c.months[oldest]; o == nil || m.used < o.used {
				oldest = key
			}
		}
		c.held -= len(c.months[oldest].shards)
		delete(c.months, oldest)
	}
}

func overlapping(shards map[string]cachedShard, lo, hi int64) (out []Shard) {
	for _, s := range shards {
		if !s.gone && s.Overlaps(lo, hi) {
			out = append(out, s.Shard)
		}
	}
	return out
}
