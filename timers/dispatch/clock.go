package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-events/almanac/backoff"
	"github.com/almanac-events/almanac/schemas"
)

// clock is the local clock, held back to the NATS server's.
type clock struct {
	mu      sync.Mutex
	samples [4]sample
	n       int
	// local is time.Now, but in tests.
	local func() time.Time
}

// sample is a time that the server's clock had passed when the answer came.
type sample struct {
	server time.Time
	came   time.Time // local, monotonic
}

const (
	// sampleEvery is how often the server's time is asked for.
	sampleEvery = 5 * time.Second
	// goodTrip is how long an answer may take: the clock is behind by at most as much. After a slower one
	// the time is asked for again after againSample, at most moreSamples times in a row.
	goodTrip    = 10 * time.Millisecond
	againSample = 100 * time.Millisecond
	moreSamples = 20
)

// now returns the time in unix ns: the local one, or the server's where that is known to be less. Before the
// first answer it is 0, and nothing is due.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	local := c.time()
	var server int64
	for _, s := range c.samples[:min(c.n, len(c.samples))] {
		server = max(server, s.server.Add(local.Sub(s.came)).UnixNano())
	}
	return min(local.UnixNano(), server)
}

func (c *clock) time() time.Time {
	if c.local != nil {
		return c.local()
	}
	return time.Now()
}

func (c *clock) add(s sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples[c.n%len(c.samples)] = s
	c.n++
}

// known reports whether the server has answered once.
func (c *clock) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n > 0
}

// follow asks for the server's time until ctx ends.
func (c *clock) follow(ctx context.Context, ask func(context.Context) (time.Time, error)) {
	for slow := 0; ctx.Err() == nil; {
		var wait time.Duration
		wait, slow = c.sample(ctx, ask, slow)
		_ = backoff.Sleep(ctx, wait)
	}
}

// sample asks once. slow counts the slow answers in a row before it. It returns how long to wait for the
// next: an answer that took long holds the clock back by as much, so it is not left to stand for long.
func (c *clock) sample(ctx context.Context, ask func(context.Context) (time.Time, error), slow int) (wait time.Duration, slowNow int) {
	asked, cancel := context.WithTimeout(ctx, sampleEvery)
	defer cancel()
	began := c.time()
	server, err := ask(asked)
	came := c.time()
	if err == nil {
		c.add(sample{server, came})
		if came.Sub(began) <= goodTrip {
			return sampleEvery, 0
		}
	}
	if slow >= moreSamples && c.known() {
		return sampleEvery, 0
	}
	return againSample, slow + 1
}

// serverTime asks NATS for its time.
func (d *Dispatcher) serverTime(ctx context.Context) (time.Time, error) {
	s, err := d.js.Stream(ctx, schemas.StreamTimers)
	if err != nil {
		return time.Time{}, err
	}
	return s.CachedInfo().TimeStamp, nil
}
