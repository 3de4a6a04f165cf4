package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/backoff"
	"github.com/almanac-events/almanac/schemas"
)

// clock is the local clock, held back to the NATS server's.
type clock struct {
	mu      sync.Mutex
	samples [4]sample
	n       int
}

// sample is a time that the server's clock had passed when the answer came.
type sample struct {
	server time.Time
	came   time.Time // local, monotonic
}

// sampleEvery is how often the server's time is asked for.
const sampleEvery = 5 * time.Second

// now returns the time in unix ns: the local one, or the server's where that is known to be less. Before the
// first answer it is 0, and nothing is due.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	local := time.Now()
	var server int64
	for _, s := range c.samples[:min(c.n, len(c.samples))] {
		server = max(server, s.server.Add(local.Sub(s.came)).UnixNano())
	}
	return min(local.UnixNano(), server)
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
func (c *clock) follow(ctx context.Context, js jetstream.JetStream) {
	for ctx.Err() == nil {
		wait := sampleEvery
		asked, cancel := context.WithTimeout(ctx, sampleEvery)
		s, err := js.Stream(asked, schemas.StreamTimers)
		if err == nil {
			c.add(sample{s.CachedInfo().TimeStamp, time.Now()})
		} else if !c.known() {
			wait = 100 * time.Millisecond
		}
		cancel()
		_ = backoff.Sleep(ctx, wait)
	}
}
