package streams

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Clock is the NATS server's clock as a process knows it: times that the server said, and
// what passed since by the monotonic clock. The wall clock of the machine may be anything.
// The zero value knows nothing yet. It is safe for concurrent use.
type Clock struct {
	// Local is time.Now, but in tests.
	Local func() time.Time

	mu      sync.Mutex
	samples [4]sample
	n       int
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

// Passed returns a time, unix ns, that the server's clock has passed for certain: what is due by it is not early.
// Before the first answer it is 0.
func (c *Clock) Passed() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	local := c.local()
	var server int64
	for _, s := range c.samples[:min(c.n, len(c.samples))] {
		server = max(server, s.at(local))
	}
	return server
}

// Now returns the server's time in unix ns, as Passed does: an answer that took long does not turn it back. It asks where
// the last answer is older than sampleEvery. Where no answer comes it goes by those before; without any it is an error.
func (c *Clock) Now(ctx context.Context, ask func(context.Context) (time.Time, error)) (int64, error) {
	if c.age() >= sampleEvery {
		if err := c.ask(ctx, ask); err != nil && !c.Known() {
			return 0, fmt.Errorf("the time of the NATS server: %w", err)
		}
	}
	return c.Passed(), nil
}

// age is how long ago the last answer came; before the first it is sampleEvery, so that Now asks.
func (c *Clock) age() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 {
		return sampleEvery
	}
	return c.local().Sub(c.samples[(c.n-1)%len(c.samples)].came)
}

// at is the server's time at a local one.
func (s *sample) at(local time.Time) int64 { return s.server.Add(local.Sub(s.came)).UnixNano() }

func (c *Clock) local() time.Time {
	if c.Local != nil {
		return c.Local()
	}
	return time.Now()
}

func (c *Clock) add(s sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples[c.n%len(c.samples)] = s
	c.n++
}

// Known reports whether the server has answered once.
func (c *Clock) Known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n > 0
}

// Follow asks for the server's time until ctx ends.
func (c *Clock) Follow(ctx context.Context, ask func(context.Context) (time.Time, error)) {
	for slow := 0; ctx.Err() == nil; {
		var wait time.Duration
		wait, slow = c.sample(ctx, ask, slow)
		_ = backoff.Sleep(ctx, wait)
	}
}

// sample asks once. slow counts the slow answers in a row before it. It returns how long to wait for the
// next: an answer that took long holds the clock back by as much, so it is not left to stand for long.
func (c *Clock) sample(ctx context.Context, ask func(context.Context) (time.Time, error), slow int) (wait time.Duration, slowNow int) {
	began := c.local()
	err := c.ask(ctx, ask)
	if err == nil && c.local().Sub(began) <= goodTrip {
		return sampleEvery, 0
	}
	if slow >= moreSamples && c.Known() {
		return sampleEvery, 0
	}
	return againSample, slow + 1
}

// ask asks the server once, and keeps what it says.
func (c *Clock) ask(ctx context.Context, ask func(context.Context) (time.Time, error)) error {
	ctx, cancel := context.WithTimeout(ctx, sampleEvery)
	defer cancel()
	server, err := ask(ctx)
	if err == nil {
		c.add(sample{server, c.local()})
	}
	return err
}

// TimeOf returns a function that asks NATS for its time, by a stream that exists.
func TimeOf(js jetstream.JetStream, stream string) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		info, err := Info(ctx, js, stream)
		if err != nil {
			return time.Time{}, err
		}
		return info.TimeStamp, nil
	}
}
