package sinks

import (
	"context"
	"slices"
	"sync"
	"time"
)

// limiter says which inserts are under way. Each keeps a processor busy that the
// streams, the router and queries want too, so while none has to wait for long they
// go half of the slots at a time, one behind the other; when one has waited for
// maxQueueWait, or a crowd stands behind it, more are due than that, and all slots are used.
type limiter struct {
	slots        uint64 // rows of inserts that may be under way
	unlimited    int    // inserts at once while none waits for long; all slots afterwards
	maxQueueWait time.Duration

	mu      sync.Mutex
	rows    uint64 // of those under way
	inserts int    // under way
	line    []*slot
}

// slot is one insert's place in the line.
type slot struct {
	weight uint64
	since  time.Time
	begun  chan struct{} // closed when it may begin
}

func newLimiter(cfg *Config) *limiter {
	return &limiter{slots: uint64(cfg.Inserts) * cfg.BatchRows, unlimited: cfg.unlimited(), maxQueueWait: cfg.MaxQueueWait}
}

// unlimited is how many inserts go at once while none waits for long.
func (c *Config) unlimited() int { return max(1, c.Inserts/2) }

// crowd is how many inserts in line are not made to wait for maxQueueWait: as many small ones
// as count as a full one. Events of many months, which come to as many shards, do that.
const crowd = smallestShare

// mayBegin says whether the insert at the head of the line may begin, which has
// waited for so long and has so many behind it: not more than fit, and while it is not
// impatient no more than a few at once.
func (t *limiter) mayBegin(weight uint64, waited time.Duration, behind int) bool {
	return t.rows+weight <= t.slots && (t.inserts < t.unlimited || waited >= t.maxQueueWait || behind >= crowd)
}

// advance lets those begin that may, in the order in which they came; mu is held.
func (t *limiter) advance(now time.Time) {
	for len(t.line) > 0 && t.mayBegin(t.line[0].weight, now.Sub(t.line[0].since), len(t.line)-1) {
		t.rows, t.inserts = t.rows+t.line[0].weight, t.inserts+1
		close(t.line[0].begun)
		t.line = t.line[1:]
	}
}

// take waits for a turn of so many rows, at most slots, until ctx ends. Who got one
// gives it back with done.
func (t *limiter) take(ctx context.Context, weight uint64) error {
	mine := &slot{weight: weight, since: time.Now(), begun: make(chan struct{})}
	t.mu.Lock()
	t.line = append(t.line, mine)
	t.advance(mine.since)
	t.mu.Unlock()
	impatient := time.NewTimer(t.maxQueueWait)
	defer impatient.Stop()
	for {
		select {
		case <-mine.begun:
			return nil
		case now := <-impatient.C:
			t.mu.Lock()
			t.advance(now)
			t.mu.Unlock()
		case <-ctx.Done():
			t.mu.Lock()
			defer t.mu.Unlock()
			if i := slices.Index(t.line, mine); i >= 0 {
				t.line = slices.Delete(t.line, i, i+1)
			} else { // it came at this instant
				t.leave(weight)
			}
			t.advance(time.Now()) // who stood behind
			return ctx.Err()
		}
	}
}

// done gives a turn of so many rows back.
func (t *limiter) done(weight uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(weight)
	t.advance(time.Now())
}

// leave takes an insert from those under way; mu is held.
func (t *limiter) leave(weight uint64) {
	t.rows, t.inserts = t.rows-weight, t.inserts-1
}
