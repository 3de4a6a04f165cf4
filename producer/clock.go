package producer

import (
	"sync/atomic"
	"time"
)

// clock reads the wall clock at half the price of time.Now, which asks the
// system twice: for the wall clock and for the monotonic one. It asks for the
// second alone, and at most wallFresh later for both again, so that it follows
// what sets the wall clock.
type clock struct {
	origin time.Time    // has a monotonic reading
	offset atomic.Int64 // unix ns at the monotonic reading 0 of origin
	readAt atomic.Int64 // monotonic ns since origin when offset was read
}

// wallFresh is how long the wall clock is taken to go with the monotonic one.
// After the machine slept they differ by that sleep, for this long.
const wallFresh = time.Millisecond

func newClock() *clock {
	c := &clock{origin: time.Now()}
	c.offset.Store(c.origin.UnixNano())
	return c
}

// now is unix ns.
func (c *clock) now() int64 {
	mono := int64(time.Since(c.origin))
	if mono-c.readAt.Load() > int64(wallFresh) {
		t := time.Now()
		mono = int64(t.Sub(c.origin))
		// Two at once may mix their pairs; each offset is right all the same.
		c.offset.Store(t.UnixNano() - mono)
		c.readAt.Store(mono)
	}
	return c.offset.Load() + mono
}
