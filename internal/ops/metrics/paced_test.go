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
			return []Sample{Shards.Is(3, "app", "active"), Members.Is(1, "router")}, nil
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
			known int // samples
		}{
			{"the first read failed", 0, 1, why, 0},
			{"before the pause ends", apart - time.Second, 1, why, 0},
			{"the second is under way", 2 * time.Second, 2, why, 0}, // which is all that is known
			{"the second was good", 3 * time.Second, 2, nil, 2},
			{"before twenty times as long", pause*2*time.Second - 6*time.Second, 2, nil, 2},
			{"the third is under way", 6 * time.Second, 3, errUnderWay, 2},
			{"the third failed, without those that are true only now", 3 * time.Second, 3, why, 1},
			{"the others failed, and it is old", maxAge, 4, why, 0},
		} {
			<-time.After(step.after)
			for range 2 {
				got, err := source.Read(t.Context())
				if !errors.Is(err, step.err) || len(got) != step.known || reads.Load() != step.reads {
					t.Errorf("%s: %d samples, %v after %d reads", step.name, len(got), err, reads.Load())
				}
				if strings.Contains(step.name, "under way") {
					break // another would wait until it ends
				}
			}
		}
	})
}

// A probe that takes 2 s is asked again as soon as the pause between two has passed, and so says what is now: what takes twenty times as
// long is for reads that cost something.
func TestProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0.0
		source := Probed("ready", func(context.Context) ([]Sample, error) {
			asked++
			<-time.After(2 * time.Second)
			return []Sample{Ready.Is(asked)}, nil
		}, time.Second)
		for n := range 5 {
			<-time.After(time.Second)
			got, err := source.Read(t.Context())
			if want := float64(max(n, 1)); len(got) != 1 || got[0].Value != want || (err != nil) != (n > 0) || err != nil && !errors.Is(err, errUnderWay) {
				t.Errorf("after %d reads: %+v, %v", n, got, err)
			}
			<-time.After(2 * time.Second) // the one under way ends
		}
	})
}

// A source that is seldom asked, or slow, gives no numbers that are older than maxAge: the next read is waited for, and where it takes longer than the
// caller waits the source has failed. A slow one is read again in time, so that who asks often never meets that.
func TestPacedIsNotOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(2 * readWait) }() // a read that is under way ends
		takes := time.Second
		var reads atomic.Int32
		source := Paced("front", func(ctx context.Context) ([]Sample, error) {
			reads.Add(1)
			select {
			case <-time.After(takes):
				return []Sample{Shards.Is(3, "app", "active")}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, 10*time.Second)
		ask := func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			got, err := source.Read(ctx)
			if old := (*oldError)(nil); errors.As(err, &old) && (len(got) != 1 || old.age(time.Now()) > maxAge) {
				t.Errorf("%d numbers that are %s old", len(got), old.age(time.Now()))
			}
			if errors.Is(err, errUnderWay) { // it goes on
				return nil
			}
			return err
		}
		if err := ask(time.Minute); err != nil {
			t.Fatal(err)
		}
		<-time.After(maxAge) // not asked meanwhile
		takes = 50 * time.Second
		if err := ask(2 * time.Second); err == nil {
			t.Error("numbers that are too old were returned for those of now")
		}
		if err := ask(time.Minute); err != nil {
			t.Errorf("the read is waited for: %v", err)
		}
		for range 60 { // it takes long, and is asked every 15 s
			<-time.After(15 * time.Second)
			if err := ask(2 * time.Second); err != nil {
				t.Fatalf("after %d reads: %v", reads.Load(), err)
			}
		}
		if n := reads.Load(); n < 4 || n > 7 {
			t.Errorf("%d reads in 15 min that may be %s apart", n, maxPause)
		}
		takes = time.Hour // it hangs
		<-time.After(maxPause + 2*time.Second)
		failed := false
		for range 8 {
			failed = failed || ask(2*time.Second) != nil
			<-time.After(10 * time.Second)
		}
		if !failed {
			t.Error("a source that hangs gave its last numbers all the same")
		}
	})
}
