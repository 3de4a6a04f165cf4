package bench

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// asking asks for all marks that wait at once, as one screen would that shows them.
// Were each asked for by itself, those that wait longer would be asked for more often:
// at half load that was 60 statements a second and a quarter of a processor of two, a
// load of its own that made the wait longer.
type asking struct {
	ask   func(ctx context.Context, waiting map[string]time.Time) (map[string]uint64, error)
	pause time.Duration // between two questions

	mu      sync.Mutex
	waiting map[string]time.Time // marks by trace, and the events' times
	answers map[string]chan error
}

func newAsking(ask func(context.Context, map[string]time.Time) (map[string]uint64, error), pause time.Duration) *asking {
	return &asking{ask: ask, pause: pause, waiting: map[string]time.Time{}, answers: map[string]chan error{}}
}

// run asks until ctx ends.
func (a *asking) run(ctx context.Context) {
	for range backoff.Ticks(ctx, a.pause) {
		a.mu.Lock()
		waiting := maps.Clone(a.waiting)
		a.mu.Unlock()
		if len(waiting) == 0 {
			continue
		}
		there, err := a.ask(ctx, waiting)
		a.mu.Lock()
		for trace := range waiting {
			if n := there[trace]; err != nil || n > 0 {
				a.answer(trace, err, n)
			}
		}
		a.mu.Unlock()
	}
}

// answer tells who waits for a mark; mu is held.
func (a *asking) answer(trace string, err error, n uint64) {
	if err == nil {
		err = doubled(n)
	}
	if c := a.answers[trace]; c != nil {
		c <- err
	}
	delete(a.waiting, trace)
	delete(a.answers, trace)
}

// seen waits until a mark is there.
func (a *asking) seen(ctx context.Context, at time.Time, trace string) error {
	c := make(chan error, 1)
	a.mu.Lock()
	a.waiting[trace], a.answers[trace] = at, c
	a.mu.Unlock()
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, trace)
		delete(a.answers, trace)
		return ctx.Err()
	}
}
