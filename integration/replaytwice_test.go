package integration

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/replay"
)

// The same replay into a topic, run again, adds what was routed
// since and nothing else, however the first ended; --again is another matter.
func TestReplayIntoATopicTwice(t *testing.T) {
	t.Parallel()
	copied := replayTopic(2)
	copied.Name = "copy"
	e := running(t, replayTopic(2), copied)
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

// Replays of ranges that overlap and are not the same double what they share, so
// each names the ones before it; apart, or into another topic, they name none.
func TestOverlappingReplaysAreNamed(t *testing.T) {
	t.Parallel()
	one, other := replayTopic(1), replayTopic(1)
	one.Name, other.Name = "one", "other"
	e := running(t, replayTopic(1), one, other)
	at := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	e.fill("app", 10, at)
	e.stored("app", 10, 20*time.Second)
	begin := func(into string, from, to time.Duration) *replay.Job {
		t.Helper()
		j, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: "app", Into: into, From: at.Add(from), To: at.Add(to)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Run(t.Context(), nil, replay.Pace{}); err != nil {
			t.Fatal(err)
		}
		return j
	}
	first := begin("one", 0, time.Hour)
	for _, c := range []struct {
		name, into string
		from, to   time.Duration
		named      bool
	}{
		{"the same", "one", 0, time.Hour, false},
		{"apart", "one", 2 * time.Hour, 3 * time.Hour, false},
		{"into another", "other", 0, 2 * time.Hour, false},
		{"overlapping", "one", 30 * time.Minute, 90 * time.Minute, true},
	} {
		if got := begin(c.into, c.from, c.to).Meets(); slices.Contains(got, first.ID()) != c.named || len(got) > 0 != c.named {
			t.Errorf("%s: it names %v, the first is %s", c.name, got, first.ID())
		}
	}
}
