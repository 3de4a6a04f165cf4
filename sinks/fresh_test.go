package sinks

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// A shard waits as long as its topic lets SQL be old, less what routing and the insert
// take; while a reader waits it does not.
func TestSQLFresh(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{
		time.Second: 500 * time.Millisecond, 2 * time.Second: time.Second, 10 * time.Second: 8500 * time.Millisecond, time.Minute: 58500 * time.Millisecond,
	} {
		if got := lingerOf(within); got != want {
			t.Errorf("fresh within %s: an insert every %s, want %s", within, got, want)
		}
	}
	f := newFresh(0)
	f.heard([]schemas.Topic{{Name: "slow", SQLFresh: time.Minute}, {Name: "usual"}})
	for topic, want := range map[string]time.Duration{"slow": lingerOf(time.Minute), "usual": lingerOf(schemas.DefaultSQLFresh), "new": lingerOf(schemas.MinSQLFresh)} {
		if got := f.linger(topic); got != want {
			t.Errorf("topic %s lingers %s, want %s", topic, got, want)
		}
	}
	if got := newFresh(time.Millisecond).linger("usual"); got != time.Millisecond {
		t.Errorf("a linger for all topics is %s", got)
	}
}

// Where fetching, the wait for a turn and the insert take longer than what is reserved for
// them, inserts follow each other sooner.
func TestSQLFreshOnABusyMachine(t *testing.T) {
	linger := lingerOf(schemas.DefaultSQLFresh)
	for _, c := range []struct {
		what   string
		worked []time.Duration
		want   time.Duration
	}{
		{"quick", []time.Duration{100 * time.Millisecond, 100 * time.Millisecond}, linger},
		{"as slow as is reserved", []time.Duration{500 * time.Millisecond, 500 * time.Millisecond}, linger},
		{"slow once", []time.Duration{100 * time.Millisecond, 3 * time.Second}, linger},
		{"slow", []time.Duration{2 * time.Second, 2 * time.Second}, linger - 3*time.Second},
		{"slower than the promise", []time.Duration{time.Minute, time.Minute}, linger / 2},
		{"quick again", []time.Duration{time.Minute, time.Minute, 0}, linger},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := &state{linger: linger}
			for i, d := range c.worked {
				s.beganAt = t0
				s.stored(outcome{head: position{pos: uint64(i)}, counted: true, began: t0.Add(d / 2)}, t0.Add(d))
			}
			if got := s.gap(); got != c.want {
				t.Errorf("%s: %s from one insert to the next, want %s", c.what, got, c.want)
			}
		})
	}
}

func TestHurriedShard(t *testing.T) {
	cfg := Config{}.withDefaults()
	shard := func(topic string) *state {
		return &state{ref: schemas.ShardRef{Topic: topic}, linger: 10 * time.Second, beganAt: t0, headKnown: true, counted: true, tail: position{pos: 2}, since: t0.Add(100 * time.Millisecond)}
	}
	asked, other := shard("asked"), shard("other")
	s := &Sinks{hurried: map[string]time.Time{}, schedule: map[schemas.Shard]*state{1: asked, 2: other}}
	due := func(what string, st *state, want time.Duration) {
		t.Helper()
		if got := st.dueAt(&cfg, interval{}).Sub(t0); got != want {
			t.Errorf("%s: due after %s, want %s", what, got, want)
		}
	}
	due("no reader waits", asked, 10*time.Second)
	s.hurry("asked", t0.Add(4*time.Second))
	due("a reader waits", asked, time.Second)
	due("of another topic", other, 10*time.Second)
	asked.since = t0.Add(4*time.Second + hurriedFor - 1)
	due("what was routed soon after it said so", asked, asked.since.Add(cfg.FirstWait).Sub(t0))
	asked.beganAt, asked.since = t0.Add(8*time.Second), t0.Add(8*time.Second)
	due("what came later", asked, 18*time.Second)
	s.hurry("other", t0.Add(time.Minute))
	if len(s.hurried) != 1 {
		t.Errorf("words of readers are kept forever: %v", s.hurried)
	}
}
