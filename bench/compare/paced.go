package main

import (
	"fmt"
	"iter"
	"time"

	"github.com/almanac-events/almanac/internal/bench"
	"github.com/almanac-events/almanac/schemas"
)

// sendTick is how often a paced sender wakes: what is due is sent in a burst.
const sendTick = 10 * time.Millisecond

// share is what one sender sends: as fast as it is taken, or at its part of the rate, on a
// schedule that does not wait for answers.
func (c *contest) share(seed uint64) iter.Seq[schemas.Event] {
	events := bench.Events(seed, c.events/c.senders, c.eventBytes)
	if c.rate == 0 {
		return events
	}
	return func(yield func(schemas.Event) bool) {
		began, each, sent := time.Now(), time.Second*time.Duration(c.senders)/time.Duration(c.rate), 0
		for e := range events {
			for time.Since(began) < time.Duration(sent)*each {
				time.Sleep(sendTick)
			}
			if sent++; !yield(e) {
				return
			}
		}
	}
}

// offered says the rate, empty where there is none.
func (c *contest) offered() string {
	if c.rate == 0 {
		return ""
	}
	return fmt.Sprintf(", %d/s offered", c.rate)
}
