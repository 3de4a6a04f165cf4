package sinks

import (
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// interval is how long a shard waits after an insert while its next batch is not full.
type interval struct {
	time time.Duration
	// idleAfter is when the rest is over because no shard got a frame any more: at the end
	// of a burst nothing more is worth waiting for.
	idleAfter time.Time
}

// end is when a shard has rested whose last insert ended at storedAt.
func (r interval) end(storedAt time.Time) time.Time {
	if end := storedAt.Add(r.time); end.Before(r.idleAfter) {
		return end
	}
	return r.idleAfter
}

// interval is that of all shards which are behind or at work. One that failed asks for
// nothing until it is tried again.
func (c *Config) interval(pending map[schemas.Shard]*state) interval {
	var work time.Duration
	var heard time.Time
	shards := 0
	for _, s := range pending {
		if s.fault != nil {
			continue
		}
		shards++
		work += min(s.took[0], s.took[1])
		if s.lastAt.After(heard) {
			heard = s.lastAt
		}
	}
	r := intervalOf(work, shards, c)
	return interval{r, heard.Add(max(c.IdleAfter, r/idleShare))}
}

// intervalOf is how long each of so many shards rests when an insert of each takes work
// altogether: so long that they keep the engine busy for a part of the time, and no
// longer than there is something to gain. An insert costs ClickHouse 27 ms of a
// processor apart from its rows (21 for itself and the rest for the head read back,
// by inserts of 2,000 to 40,000 rows), as much as 15,000 rows: so the bound is one on
// inserts a second, until shards are so many that each would rest for longer than
// MaxInterval. With ten topics at full load (40 shards, two processors) inserts came to
// 23,000 and 24,000 rows and an event cost ClickHouse 3.0 and 3.9 microseconds; with
// each shard for itself, in turn with those runs, to 7,600 and 8,700 rows for 6.3 and 5.7.
func intervalOf(work time.Duration, shards int, c *Config) time.Duration {
	slots := float64(c.Inserts)
	limit := min(max(float64(c.MinInterval), float64(c.MinInterval)*float64(shards)/(slots*intervalShards)), float64(max(c.MaxInterval, c.MinInterval)))
	return time.Duration(min(float64(work)/(float64(c.unlimited())*busyShare), limit))
}

const (
	// idleShare is how many lulls a long rest is worth: where many shards are busy the
	// router's batches are further apart, and a disk that stalls for half a second must
	// not make them all insert at once.
	idleShare = 4
	// busyShare is the part of the time in which inserts that are not full may keep
	// each slot busy that they use while they take turns.
	busyShare = 0.5
	// intervalShards is how many shards a slot serves before they rest for longer than
	// Rest: those of one topic on two processors do not.
	intervalShards = 2
)
