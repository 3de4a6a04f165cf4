package router

import (
	"sync"
	"time"
)

const (
	// maxLinger is a fifth of what an event may take until SQL shows it. With a second in
	// its place nothing costs less while a topic's lanes are all that is busy, and at half
	// load every page waits for longer batches.
	maxLinger = 300 * time.Millisecond
	// lingerLanes is how many lanes a linger is for: with more it grows with their number,
	// up to lingerLimit, as far apart as a sink's inserts are then. Each lane brings its
	// checkpoint to every group, which costs as much as a small frame.
	lingerLanes = 16
	lingerLimit = time.Second
	// smallBatch is below what a batch is small: to stage it costs JetStream more than to
	// store its frames, at 1,000 events/s as much as all other parts of `up` together. The
	// next one is smallLingers times as far away then. At 20,000 events/s of 200 bytes a
	// batch each 100 ms has 90 KiB.
	smallBatch   = 256 << 10
	smallLingers = 3
)

// linger is how far apart the commits of a lane are: the least that is asked for,
// smallLingers times that after a small one, four times as long as the last one took, up
// to maxLinger, and longer when many lanes are busy. A stream whose disk is busy with other
// syncs gets fewer and larger batches, and those of EVENTS their turn. It is a multiple of
// the least, so that lanes that disagree still meet.
func linger(least time.Duration, last commit, busy int) time.Duration {
	if least <= 0 {
		return 0
	}
	want := max(min(4*last.took, maxLinger), min(least*time.Duration(busy)/lingerLanes, lingerLimit))
	if last.bytes < smallBatch {
		want = max(want, min(smallLingers*least, maxLinger))
	}
	return max(1, (want+least/2)/least) * least
}

// commit is what the last batch of a lane had and took.
type commit struct {
	bytes int
	took  time.Duration
}

// beat is the first multiple of every after a time, counted from origin: lanes that wait
// for it commit together, whenever each began. A time before origin is its own beat.
func beat(origin, after time.Time, every time.Duration) time.Time {
	if every <= 0 || after.Before(origin) {
		return after
	}
	return origin.Add((after.Sub(origin)/every + 1) * every)
}

// pace knows when each lane of a router last had a batch.
type pace struct {
	origin time.Time // of the beat

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
