package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// An erasure takes timers out of TIMERS before it takes their rows. Verify says so meanwhile, and makes no problem of
// them. A timer of the same id in another group, which the erasure does not mean, stays one.
func TestVerifyTimersDuringErasure(t *testing.T) {
	t.Parallel()
	e := running(t).timers()
	const topic, mine, taken = schemas.DefaultTimerTopic, 6, 4
	if _, _, err := timers.ApplyGroup(t.Context(), e.reg, topic, "h", func(g *timer.Group) error { g.Slots = 16; return nil }); err != nil {
		t.Fatal(err)
	}
	due := time.Now().Add(time.Hour)
	for _, id := range named("t", mine) {
		for group, user := range map[string]string{"g": "u-7", "h": "u-1"} {
			if _, _, err := e.Create(t.Context(), timers.Draft{Group: group, ID: id, Due: due, URL: e.url, User: user}); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.stored(topic, 2*mine, time.Minute)
	e.verified(topic)
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: topic, Users: []string{"u-7"}})
	if err != nil {
		t.Fatal(err)
	}
	take := func(group, id string) { // as the erasure does it, killed before it takes rows
		t.Helper()
		if err := streams.Purge(t.Context(), e.reg.JetStream(), schemas.StreamTimers, e.keyOf(group, id).Subject(), streams.Refuse); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range named("t", taken) {
		take("g", id)
	}
	r := e.fronts(topic)
	if f := r.Topics[0].Front; len(r.Problems) > 0 || f.Differ != 0 || f.Erasing != taken || f.Erasure != job.ID {
		t.Errorf("%+v, %q; expected %d that %s takes", f, r.Problems, taken, job.ID)
	}
	take("h", "t-1")
	r = e.fronts(topic)
	if f := r.Topics[0].Front; f.Differ != 1 || f.Erasing != taken || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], `timer "t-1" of group "h"`) {
		t.Errorf("%+v, %q; expected a problem with the one of another", f, r.Problems)
	}
	if job, err = x.Run(t.Context(), topic, job.ID); err != nil || job.State != ledger.Erased {
		t.Fatalf("%+v, %v", job, err)
	}
	r = e.fronts(topic)
	if f := r.Topics[0].Front; f.Differ != 1 || f.Erasing != 0 || len(r.Problems) != 1 {
		t.Errorf("ended: %+v, %q", f, r.Problems)
	}
}

// keyOf is where a timer lives in TIMERS.
func (e *timersEnv) keyOf(group, id string) schemas.TimerKey {
	e.t.Helper()
	topic, err := e.reg.Topic(e.t.Context(), schemas.DefaultTimerTopic)
	if err != nil {
		e.t.Fatal(err)
	}
	g, err := e.reg.TimerGroup(e.t.Context(), topic.Name, group)
	if err != nil {
		e.t.Fatal(err)
	}
	key, err := g.Key(id, topic.Lanes)
	if err != nil {
		e.t.Fatal(err)
	}
	return key
}
