package streams

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestClockAfterASlowAnswer holds that an answer which took long holds the clock back until the next answer
// only, and that the next is asked for at once and not in sampleEvery.
func TestClockAfterASlowAnswer(t *testing.T) {
	t.Parallel()
	at := time.Now()
	c := Clock{Local: func() time.Time { return at }}
	ask := func(trip time.Duration, err error) func(context.Context) (time.Time, error) {
		return func(context.Context) (time.Time, error) {
			said := at
			at = at.Add(trip)
			return said, err
		}
	}
	behind := func() time.Duration { return time.Duration(at.UnixNano() - c.Passed()) }
	if c.Known() || c.Passed() != 0 {
		t.Error("the clock knows the time before the first answer")
	}
	wait, slow := c.sample(t.Context(), ask(time.Second, errors.New("no answer")), 0)
	if wait != againSample || slow != 1 || c.Known() {
		t.Errorf("without an answer: waits %s", wait)
	}
	if wait, slow = c.sample(t.Context(), ask(4*time.Second, nil), slow); wait != againSample || behind() != 4*time.Second {
		t.Errorf("after an answer of 4 s: waits %s, behind by %s", wait, behind())
	}
	if wait, slow = c.sample(t.Context(), ask(time.Millisecond, nil), slow); wait != sampleEvery || slow != 0 || behind() != time.Millisecond {
		t.Errorf("after one of 1 ms: waits %s, behind by %s", wait, behind())
	}
	for range moreSamples {
		if wait, slow = c.sample(t.Context(), ask(time.Second, nil), slow); wait != againSample {
			t.Fatalf("slow answer %d: waits %s", slow, wait)
		}
	}
	if wait, slow = c.sample(t.Context(), ask(time.Second, nil), slow); wait != sampleEvery || slow != 0 {
		t.Errorf("a server that is always slow is asked again after %s", wait)
	}
}
