package timers

import (
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// client creates, changes, deletes and retries timers, one write at a time, each until its outcome is known.
type client struct {
	busy   bool
	next   timer.Record
	expect uint64
	nonce  uint64
}

var policy = &timer.Policy{Attempts: 3, Initial: 5, Multiplier: 1, MaxInterval: 5}

func (c *client) step(w *world) {
	if c.busy {
		if _, a := w.found(c.next.Key, c.expect, c.nonce); a != unknown {
			c.busy = false // stored, or another's came first
			return
		}
		_, a := w.put(c.next, c.expect, c.nonce, false)
		c.busy = a == unknown
		return
	}
	if w.quiet {
		return
	}
	key := keyOf(w.rng.IntN(keys))
	var prev *timer.Record
	if e := w.last(key); e != nil {
		r := e.Record
		r.Spec = w.specOf(&r)
		prev, c.expect = &r, e.Seq
	} else {
		c.expect = 0
	}
	next, err := c.ask(w, key, prev)
	if err != nil {
		return
	}
	c.next, c.nonce = next, w.rng.Uint64()
	_, a := w.put(c.next, c.expect, c.nonce, false)
	c.busy = a == unknown
}

func (c *client) ask(w *world, key schemas.TimerKey, prev *timer.Record) (timer.Record, error) {
	due := w.now + w.rng.Int64N(20)
	switch w.rng.IntN(4) {
	case 0:
		if prev == nil {
			return timer.Record{}, timer.ErrNotFound
		}
		from := *prev
		if w.broken == UpdateWhileFiring && from.State() == timer.StateFiring {
			from.Op = timer.Retry
		}
		return timer.Update(&from, timer.Change{Due: &due}, timer.AnyRevision, w.now)
	case 1:
		next, _, err := timer.Delete(prev, timer.AnyRevision, w.now)
		return next, err
	case 2:
		next, err := timer.Again(prev, w.now)
		if err == nil && w.broken == RetryNamesOldSpec {
			next.SpecSeq, next.Spec = prev.SpecAt(), nil
		}
		return next, err
	}
	next, same, err := timer.Create(key, prev, timer.Draft{Due: due, Life: schemas.NewID(w.now), Spec: timer.Spec{URL: "http://a.example/", Retry: policy}}, w.now)
	if same {
		err = timer.ErrExists
	}
	return next, err
}
