package router

import (
	"sync"
	"time"
)

// maxLinger is a fifth of what an event may take until SQL shows it. With a second in
// its place nothing costs less while a topic's lanes are all that is busy, and at half
// load every page waits for longer batches.
const maxLinger = 300 * time.Millisecond

const (
	// lingerLanes is how many busy lanes share a stream before maxLinger grows with
	// their number: two topics. With 40 a batch that is due every 0.3 s in each is 130 a
	// second, and what the stream does for them apart from their frames, a millisecond
	// of CPU and some syncs each, is as much as for all frames.
	lingerLanes = 8
	// lingerLimit is where it ends: as far apart as a sink's inserts, which rest for
	// longer when so many shards are busy.
	lingerLimit = time.Second
)

// linger is how far apart two batches of a lane begin while so many are busy: the least
// that is asked for, and four times as long as the last one took, up to maxLinger or
// more. A stream whose disk is busy with other syncs gets fewer and larger ones, and
// those of EVENTS their turn.
func linger(least, took time.Duration, busy int) time.Duration {
	if least <= 0 {
		return 0
	}
	most := min(max(maxLinger, maxLinger*time.Duration(busy)/lingerLanes), lingerLimit)
	return max(least, min(4*took, most))
}

// pace knows when each lane of a router last had a batch.
type pace struct {
	mu     sync.Mutex
	last   map[laneID]time.Time
	looked time.Time // when last was last rid of quiet lanes
}

// batch notes one of a lane and returns how many lanes had one within quiet, about.
func (p *pace) batch(id laneID, now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[laneID]time.Time{}
	}
	p.last[id] = now
	if now.Sub(p.looked) >= maxLinger { // thousands of lanes are not looked through for each batch
		p.looked = now
		for id, at := range p.last {
			if now.Sub(at) > quiet {
				delete(p.last, id)
			}
		}
	}
	return len(p.last)
}
