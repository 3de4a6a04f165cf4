package router

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestLinger(t *testing.T) {
	const ms = time.Millisecond
	large := func(took time.Duration) commit { return commit{smallBatch, took} }
	small := func(took time.Duration) commit { return commit{smallBatch - 1, took} }
	for name, c := range map[string]struct {
		least time.Duration
		last  commit
		busy  int
		want  time.Duration
	}{
		"large":                    {100 * ms, large(0), 1, 100 * ms},
		"took a while":             {100 * ms, large(50 * ms), 1, 200 * ms},
		"took long":                {100 * ms, large(5 * time.Second), 4, 300 * ms},
		"sixteen lanes":            {100 * ms, large(0), 16, 100 * ms},
		"sixty-four lanes":         {100 * ms, large(20 * ms), 64, 400 * ms},
		"a million lanes":          {100 * ms, large(5 * time.Second), 1 << 20, time.Second},
		"a multiple of the least":  {70 * ms, large(30 * ms), 1, 140 * ms},
		"a long least":             {2 * time.Second, large(5 * time.Second), 1 << 20, 2 * time.Second},
		"small":                    {100 * ms, small(0), 1, 300 * ms},
		"small, many lanes":        {100 * ms, small(0), 64, 400 * ms},
		"small, a short least":     {5 * ms, small(0), 1, 15 * ms},
		"small, a long least":      {2 * time.Second, small(0), 1, 2 * time.Second},
		"none":                     {-1, large(5 * time.Second), 1 << 20, 0},
		"none, and the last small": {-1, small(0), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := linger(c.least, c.last, c.busy); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Lanes that gathered at different times are due together, none before it gathered, and
// those with other lingers meet them.
func TestBeat(t *testing.T) {
	const ms = time.Millisecond
	origin := time.Now()
	for _, c := range []struct{ after, every, want time.Duration }{
		{0, 100 * ms, 100 * ms}, {1 * ms, 100 * ms, 100 * ms}, {99 * ms, 100 * ms, 100 * ms}, {100 * ms, 100 * ms, 200 * ms},
		{130 * ms, 300 * ms, 300 * ms}, {250 * ms, 100 * ms, 300 * ms}, {17 * ms, 0, 17 * ms}, {-time.Hour, 100 * ms, -time.Hour},
	} {
		if got := beat(origin, origin.Add(c.after), c.every).Sub(origin); got != c.want {
			t.Errorf("after %s every %s: due at %s, want %s", c.after, c.every, got, c.want)
		}
	}
}

// A lane counts as busy until it had no batch for quiet.
func TestPace(t *testing.T) {
	var p pace
	t0 := time.Now()
	for i, c := range []struct {
		lane string
		at   time.Duration
		want int
	}{{"0", 0, 1}, {"1", time.Millisecond, 2}, {"1", time.Second, 2}, {"2", quiet, 3}, {"1", quiet + time.Second, 2}, {"1", time.Hour, 1}} {
		if got := p.batch(laneID{"app", c.lane}, t0.Add(c.at)); got != c.want {
			t.Errorf("batch %d: %d lanes are busy, want %d", i, got, c.want)
		}
	}
}

// A batch goes at once after a quiet time, at the next beat in a busy one, and earlier when it is worth it.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &tailer{ch: make(chan message, readAhead)}
		start := time.Now()
		gather := func(want int, at time.Duration) {
			t.Helper()
			msgs, err := f.gather(context.Background(), beat(start, f.gathered, 100*time.Millisecond), 500, 16<<20)
			if err != nil || len(msgs) != want || time.Since(start) != at {
				t.Fatalf("%d messages after %s, %v; want %d after %s", len(msgs), time.Since(start), err, want, at)
			}
		}
		send := func(sizes ...int) {
			for _, n := range sizes {
				f.ch <- message{data: make([]byte, n), pending: 1}
			}
		}
		send(1, 1)
		gather(2, 0)
		send(1)
		go func() {
			time.Sleep(60 * time.Millisecond)
			send(1, 1)
		}()
		gather(3, 100*time.Millisecond)
		send(goodBatchBytes/2, goodBatchBytes/2, 1)
		gather(3, 100*time.Millisecond)
		time.Sleep(time.Second)
		send(1)
		gather(1, 1100*time.Millisecond)
		go func() {
			time.Sleep(10 * time.Millisecond)
			send(goodBatchBytes)
		}()
		gather(1, 1110*time.Millisecond)
	})
}
