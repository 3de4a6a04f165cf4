package backoff

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// Backoff gives the pauses between attempts. It belongs to one goroutine.
type Backoff struct {
	// Least is the pause after the first failure; at most half of it is left out.
	Least time.Duration
	// Most bounds a pause.
	Most time.Duration

	failed int
}

// Next notes a failure and returns the pause before the next attempt.
func (b *Backoff) Next() time.Duration {
	b.failed++
	return After(b.failed, b.Least, b.Most, rand.Float64())
}

// Reset notes a success: the next pause is the first again.
func (b *Backoff) Reset() { b.failed = 0 }

// Wait notes a failure and waits for the pause after it. It returns ctx's error when that ends first.
func (b *Backoff) Wait(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// After returns the pause after so many failures in a row, counted from 1: between half and all of
// least × 2^(failed-1), which most bounds. r in [0, 1) chooses.
func After(failed int, least, most time.Duration, r float64) time.Duration {
	d := least
	for ; failed > 1 && d < most; failed-- {
		d *= 2
	}
	d = min(d, most)
	return d/2 + time.Duration(r*float64(d-d/2))
}

// Sleep waits for d, or until ctx ends, whose error it then returns. With d of 0 or less it asks ctx alone.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Ticks yields the time again and again, so far apart, until ctx ends. The first comes after one
// pause; those that fall due while the loop is at work come as one.
func Ticks(ctx context.Context, every time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}
