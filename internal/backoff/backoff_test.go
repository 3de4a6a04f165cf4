package backoff

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestAfter(t *testing.T) {
	for name, c := range map[string]struct {
		failed int
		r      float64
		want   time.Duration
	}{
		"the first, at least half":       {1, 0, 50 * time.Millisecond},
		"the first, at most all":         {1, math.Nextafter(1, 0), 100 * time.Millisecond},
		"doubles":                        {3, 0, 200 * time.Millisecond},
		"is bounded":                     {7, 0, 2500 * time.Millisecond},
		"does not overflow":              {math.MaxInt, 0, 2500 * time.Millisecond},
		"no failure counts as the first": {0, 0.5, 75 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got := After(c.failed, 100*time.Millisecond, 5*time.Second, c.r); (got - c.want).Abs() > 1 {
				t.Errorf("After(%d, r %v) = %s, want %s", c.failed, c.r, got, c.want)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff{Least: time.Second, Most: 4 * time.Second}
	within := func(most time.Duration) {
		t.Helper()
		if got := b.Next(); got < most/2 || got > most {
			t.Errorf("a pause of %s, want %s to %s", got, most/2, most)
		}
	}
	within(time.Second)
	within(2 * time.Second)
	within(4 * time.Second)
	within(4 * time.Second)
	b.Reset()
	within(time.Second)
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("slept %s: %v, want an hour", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("slept %s: %v, want a minute and the context's error", time.Since(began), err)
		}
		if err := Sleep(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no time with an ended context: %v", err)
		}
	})
}

func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		began, n := time.Now(), 0
		for now := range Ticks(ctx, time.Second) {
			if n++; now.Sub(began) != time.Duration(n)*time.Second {
				t.Errorf("tick %d comes after %s", n, now.Sub(began))
			}
		}
		if took := time.Since(began); n != 3 || took != 3500*time.Millisecond {
			t.Errorf("%d ticks until %s", n, took)
		}
		for range Ticks(t.Context(), time.Second) {
			break // leaves the loop, and the ticker with it
		}
	})
}
