package metrics

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPaced reads a source that takes 2 s: one read at a time, a result for all that ask, and none again for
// twenty times as long, or for the plain pause where it failed. While a read is under way the older result is served.
func TestPaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		why := errors.New("no NATS")
		const apart = 10 * time.Second
		source := Paced("front", func(context.Context) ([]Sample, error) {
			n := reads.Add(1)
			<-time.After(2 * time.Second)
			if n != 2 {
				return nil, why
			}
			return []Sample{{}}, nil
		}, apart)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := source.Read(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waits 1 s: %v", err)
		}
		for _, step := range []struct {
			name  string
			after time.Duration
			reads int32
			err   error
		}{
			{"the first read failed", 0, 1, why},
			{"before the pause ends", apart - time.Second, 1, why},
			{"the second is under way", 2 * time.Second, 2, why},
			{"the second was good", 3 * time.Second, 2, nil},
			{"before twenty times as long", pause*2*time.Second - 6*time.Second, 2, nil},
			{"the third is under way", 6 * time.Second, 3, nil},
			{"the third failed", 3 * time.Second, 3, why},
		} {
			<-time.After(step.after)
			for range 2 {
				got, err := source.Read(t.Context())
				if !errors.Is(err, step.err) || (err == nil) != (len(got) == 1) || reads.Load() != step.reads {
					t.Errorf("%s: %d samples, %v after %d reads", step.name, len(got), err, reads.Load())
				}
				if strings.Contains(step.name, "under way") {
					break // another would wait until it ends
				}
			}
		}
	})
}
