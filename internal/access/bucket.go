package access

import (
	"math"
	"time"
)

// bucket is what of a rate may still be used: one second's worth when nothing was for a second. A request is taken
// while something is left, however large it is, and those after it wait until its excess is worked off.
type bucket struct {
	left float64
	at   time.Time // of left; zero: full
}

// now returns how much is left.
func (b *bucket) now(rate float64, at time.Time) float64 {
	if b.at.IsZero() {
		return rate
	}
	return min(rate, b.left+rate*max(at.Sub(b.at), 0).Seconds())
}

// wait is how long until something is left; 0: there is.
func (b *bucket) wait(rate float64, at time.Time) time.Duration {
	left := b.now(rate, at)
	if rate <= 0 || left > 0 {
		return 0
	}
	return time.Duration(math.Min(-left/rate, maxRateWait.Seconds())*float64(time.Second)) + time.Millisecond
}

func (b *bucket) take(rate, n float64, at time.Time) {
	if rate > 0 {
		b.left, b.at = b.now(rate, at)-n, at
	}
}

// maxRateWait bounds what a client is told to wait.
const maxRateWait = time.Hour

// Rates bounds what each token sends. The zero value is ready. It is not for use by several goroutines.
type Rates struct{ by map[string]*used }

// used is what a token has of its rates.
type used struct {
	rate          Rate
	events, bytes bucket
}

// Take counts a request of a token by its size, or returns how long it is refused. Of a token without a rate it does nothing.
func (r *Rates) Take(t *Token, events, bytes int, now time.Time) (wait time.Duration) {
	if t == nil || t.Rate == (Rate{}) {
		return 0
	}
	u := r.by[t.Name]
	if u == nil {
		if r.by == nil {
			r.by = map[string]*used{}
		}
		r.forget(now)
		u = &used{}
		r.by[t.Name] = u
	}
	u.rate = t.Rate
	if wait = max(u.events.wait(t.Rate.Events, now), u.bytes.wait(t.Rate.Bytes, now)); wait > 0 {
		return wait
	}
	u.events.take(t.Rate.Events, float64(events), now)
	u.bytes.take(t.Rate.Bytes, float64(bytes), now)
	return 0
}

// Charge counts what a request turned out to have beyond what Take counted of it.
func (r *Rates) Charge(t *Token, events, bytes int, now time.Time) {
	if t == nil {
		return
	}
	if u := r.by[t.Name]; u != nil {
		u.events.take(t.Rate.Events, float64(events), now)
		u.bytes.take(t.Rate.Bytes, float64(bytes), now)
	}
}

// forget makes room for one more token where there are as many as a file may hold: those that are full again go first.
func (r *Rates) forget(now time.Time) {
	if len(r.by) < MaxTokens {
		return
	}
	for name, u := range r.by {
		if u.events.now(u.rate.Events, now) >= u.rate.Events && u.bytes.now(u.rate.Bytes, now) >= u.rate.Bytes {
			delete(r.by, name)
		}
	}
	for name := range r.by {
		if len(r.by) < MaxTokens {
			return
		}
		delete(r.by, name) // of tokens that were removed, most likely: no more than MaxTokens are valid
	}
}
