package sinks

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

var t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// lingering is a linger for tests.
const lingering = time.Second

func TestDue(t *testing.T) {
	cfg := Config{}.withDefaults()
	s := &state{linger: lingering}
	due := func(what string, want time.Time) {
		t.Helper()
		if got := s.dueAt(&cfg, cfg.interval(map[schemas.Shard]*state{1: s})); !got.Equal(want) {
			t.Errorf("%s: due %s after the start, want %s", what, got.Sub(t0), want.Sub(t0))
		}
	}
	s.noticed(position{1, 10, 1000}, 5, t0)
	due("the first frame after a quiet time", t0.Add(cfg.FirstWait))
	s.noticed(position{2, 20, 2000}, 6, t0.Add(cfg.FirstWait/2))
	due("what comes later must not push it back", t0.Add(cfg.FirstWait))

	s.beganAt = t0
	s.stored(outcome{head: s.tail, counted: true, next: 8}, t0)
	if s.behind() || !s.since.IsZero() {
		t.Errorf("stored whole and still behind: %+v", s)
	}
	s.noticed(position{3, 20 + cfg.BatchRows/4, 3000}, 7, t0.Add(time.Millisecond))
	due("a quarter of a batch soon after an insert", t0.Add(lingering*3/4))
	s.noticed(position{4, 20 + cfg.BatchRows, 4000}, 8, t0.Add(time.Millisecond))
	due("a full batch", t0.Add(time.Millisecond))
	s.noticed(position{5, 21 + cfg.BatchRows, 4000 + 2*cfg.BatchBytes}, 9, t0.Add(time.Millisecond))
	due("more than a batch", t0.Add(time.Millisecond))

	s.stored(outcome{head: position{4, 20 + cfg.BatchRows, 4000}}, t0)
	due("not counted: nothing is known of its fill", t0.Add(lingering))
	s.beganAt = t0.Add(-lingering / 2)
	due("behind work that took half a second", t0.Add(lingering/2))
	// An old notice, from a watcher that restarted, changes nothing.
	before := *s
	s.noticed(position{2, 20, 2000}, 6, t0.Add(2*time.Hour))
	if *s != before {
		t.Errorf("an old notice changed %+v to %+v", before, *s)
	}
}

func TestFaultBacksOff(t *testing.T) {
	cfg := Config{}.withDefaults()
	s := &state{}
	s.noticed(position{1, 10, 1000}, 5, t0)
	for i := range 10 {
		s.stored(outcome{err: errors.New("x")}, t0)
		most := min(minPause<<i, maxPause)
		if pause := s.dueAt(&cfg, interval{}).Sub(t0); pause < most/2 || pause > most {
			t.Errorf("pause %d is %s, want %s to %s", i+1, pause, most/2, most)
		}
	}
	s.stored(outcome{head: position{pos: 1}}, t0)
	if s.fault != nil || s.failed != 0 || s.behind() {
		t.Errorf("after success: %+v", s)
	}
}

// A hint settles what is stored whole; it never makes a shard work from a head
// that was not read for sure.
func TestHint(t *testing.T) {
	s := &state{}
	s.noticed(position{7, 70, 70}, 5, t0)
	if s.hinted(6); s.headKnown {
		t.Error("a head behind the tail was taken from a hint")
	}
	if s.hinted(7); !s.headKnown || s.behind() {
		t.Error("a shard stored whole is still behind")
	}
}

func TestNextDue(t *testing.T) {
	cfg := Config{}.withDefaults()
	pending := map[schemas.Shard]*state{
		1: {since: t0.Add(3 * time.Second), linger: lingering},
		2: {since: t0.Add(time.Second), linger: lingering},
		3: {since: t0, working: true},
	}
	s, at := nextDue(pending, &cfg)
	if s != pending[2] || !at.Equal(t0.Add(time.Second+cfg.FirstWait)) {
		t.Errorf("next is %+v at %s", s, at)
	}
	if s, _ := nextDue(nil, &cfg); s != nil {
		t.Errorf("nothing pending, and %+v is next", s)
	}
}

// A head below what was seen stored is looked at again, unless it always lay there
// because the rows that carried it are gone on purpose.
func TestWentBack(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name         string
		s            state
		head         uint64
		back, behind bool
	}{
		{"as it was", state{tail: position{pos: 9}, head: position{pos: 9}, headKnown: true}, 9, false, false},
		{"restored", state{tail: position{pos: 9}, head: position{pos: 9}, headKnown: true}, 4, true, true},
		{"emptied", state{tail: position{pos: 9}, head: position{pos: 9}, headKnown: true}, 0, true, true},
		{"erased", state{tail: position{pos: 9}, head: position{pos: 9}, absent: 5, headKnown: true}, 4, false, false},
		{"at work", state{tail: position{pos: 9}, head: position{pos: 9}, headKnown: true, working: true}, 4, false, false},
		{"not known", state{tail: position{pos: 9}}, 4, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if back := c.s.wentBack(c.head, now); back != c.back || c.s.behind() != c.behind || back && c.s.since != now {
				t.Errorf("%s: back %v, behind %v, since %v", c.name, back, c.s.behind(), c.s.since)
			}
		})
	}
}

func TestBeganAgain(t *testing.T) {
	var e engine
	t0 := time.Now()
	for i, c := range []struct {
		up, at    time.Duration
		restarted bool
	}{{50 * time.Second, 0, false}, {65 * time.Second, 15 * time.Second, false}, {79 * time.Second, 30 * time.Second, false},
		{3 * time.Second, 45 * time.Second, true}, {18 * time.Second, 60 * time.Second, false}, {0, 75 * time.Second, true}} {
		if restarted := e.restarted(c.up, t0.Add(c.at)); restarted != c.restarted {
			t.Errorf("look %d: %v", i, restarted)
		}
	}
}
