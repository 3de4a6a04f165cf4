package embeddedtest

import (
	"context"
	"testing"
	"time"
)

// Server is what the parts of Almanac have in common.
type Server interface {
	Run(ctx context.Context) error
	WaitReady(ctx context.Context) error
}

// Run runs a server until the end of the test, and returns when it is ready. stop ends it earlier; an error of Run
// fails the test.
func Run(t testing.TB, s Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			t.Errorf("%T.Run: %v", s, err)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	wait, release := context.WithTimeout(ctx, startTimeout)
	defer release()
	if err := s.WaitReady(wait); err != nil {
		t.Fatalf("%T: %v", s, err)
	}
	return stop
}

// Eventually asks until the answer is nil, and fails the test with the last answer when that takes longer than within.
func Eventually(t testing.TB, within time.Duration, ask func() error) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("still wrong after %s: %v", within, err)
		case <-tick.C:
		}
	}
}
