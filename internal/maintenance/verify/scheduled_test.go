package verify

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestScheduled holds that runs begin as far apart as they should, in the process that owns them alone, and that one that
// fails or panics is told and does not end the others.
func TestScheduled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var owns atomic.Bool
		var mu sync.Mutex
		var said []string
		say := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, what)
		}
		runs := 0
		s := Scheduled{
			Every: time.Hour, Owns: owns.Load, Began: func() { say("began") }, Left: func() { say("left") },
			Verify: func(context.Context, string) (*Report, error) {
				switch runs++; runs {
				case 2:
					return nil, errors.New("away")
				case 3:
					panic("a fault")
				}
				return &Report{}, nil
			},
			Ended: func(rep *Report, _ time.Duration, err error) {
				if (rep == nil) != (err != nil) {
					t.Errorf("%v and %v", rep, err)
				}
				say(map[bool]string{true: "ok", false: "failed"}[err == nil])
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		after := func(d time.Duration, want ...string) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(said, want) {
				t.Errorf("%q, expected %q", said, want)
			}
			said = nil
		}
		after(2 * time.Hour)
		owns.Store(true)
		after(time.Minute, "began", "ok")
		after(time.Hour, "failed")
		after(time.Hour, "failed")
		after(time.Hour, "ok")
		owns.Store(false)
		after(3*time.Hour, "left")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
