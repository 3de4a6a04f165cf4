package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/replay"
)

// Issue 13, line 11: the same replay into a topic, run again, adds what was routed
// since and nothing else, however the first ended; --again is another matter.
func TestLine11ReplayIntoATopicTwice(t *testing.T) {
	t.Parallel()
	copied := replayTopic(2)
	copied.Name = "copy"
	e := start(t, replayTopic(2), copied)
	e.router()
	e.sink()
	const n = 500
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	run := func(req replay.Request) replay.Result {
		t.Helper()
		req.Topic, req.Into = "app", "copy"
		j, err := e.replayer(nil).Begin(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		res, err := j.Run(t.Context(), nil, replay.Pace{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	e.fill("app", n, at)
	e.stored("app", n, 20*time.Second)
	// The first is stopped before it has done anything, and not resumed by its id.
	j, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: "app", Into: "copy"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := j.Run(ctx, nil, replay.Pace{Rate: 50}); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for round, want := range []uint64{n, 0, 0} {
		if res := run(replay.Request{}); res.Events != want {
			t.Errorf("round %d: %+v, want %d", round, res, want)
		}
	}
	e.fill("app", n, at.Add(time.Hour))
	e.stored("app", 2*n, 20*time.Second)
	if res := run(replay.Request{}); res.Events != n || res.Before == "" {
		t.Errorf("after more events: %+v", res)
	}
	if res := run(replay.Request{Order: replay.ByTime}); res.Events != 0 {
		t.Errorf("in another order: %+v", res)
	}
	e.stored("copy", 2*n, 20*time.Second)
	if got := e.count("SELECT uniqExact(id) FROM %s", e.table("copy")); got != 2*n {
		t.Errorf("%d ids, want %d", got, 2*n)
	}
	if res := run(replay.Request{Again: true}); res.Events != 2*n {
		t.Errorf("again: %+v", res)
	}
}
