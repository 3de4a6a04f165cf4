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
	for {
		began := time.Now()
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("still wrong after %s: %v", within, err)
		case <-time.After(pause(time.Since(began))):
		}
	}
}

// pause is how long to wait before a question is asked again that took so long: questions leave nine tenths of the time
// to what they wait for. A dozen tests ask at once, and a SELECT is 10 ms of CPU: with three quarters the questions alone
// would fill two cores.
func pause(took time.Duration) time.Duration {
	return min(max(9*took, 20*time.Millisecond), time.Second)
}
