package sinks

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

var t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestDue(t *testing.T) {
	cfg := Config{}.withDefaults()
	s := &state{}
	s.noticed(mark{1, 10, 1000}, 5, t0)
	if got := s.dueAt(&cfg); !got.Equal(t0.Add(cfg.Linger)) {
		t.Errorf("a little is due at %s, want after the linger", got)
	}
	// What comes later must not push it back.
	s.noticed(mark{2, 20, 2000}, 6, t0.Add(cfg.Linger/2))
	if got := s.dueAt(&cfg); !got.Equal(t0.Add(cfg.Linger)) {
		t.Errorf("a second frame moved the time to %s", got)
	}
	s.noticed(mark{3, cfg.BatchRows + 5, 3000}, 7, t0)
	if got := s.dueAt(&cfg); !got.Equal(t0.Add(cfg.Linger)) {
		t.Errorf("due at %s though the head is not known", got)
	}
	s.stored(outcome{head: mark{pos: 0}, counted: true}, t0)
	if got := s.dueAt(&cfg); !got.Equal(t0) {
		t.Errorf("enough rows are due at %s, want at once", got)
	}
	s.stored(outcome{head: s.tail, counted: true, next: 8}, t0)
	if s.behind() || !s.since.IsZero() {
		t.Errorf("stored whole and still behind: %+v", s)
	}
	s.noticed(mark{4, cfg.BatchRows + 6, 3000 + cfg.BatchBytes}, 9, t0.Add(time.Hour))
	if got := s.dueAt(&cfg); !got.Equal(t0.Add(time.Hour)) {
		t.Errorf("enough bytes are due at %s, want at once", got)
	}
	// An old notice, from a watcher that began anew, changes nothing.
	before := *s
	s.noticed(mark{2, 20, 2000}, 6, t0.Add(2*time.Hour))
	if *s != before {
		t.Errorf("an old notice changed %+v to %+v", before, *s)
	}
}

func TestFaultBacksOff(t *testing.T) {
	cfg := Config{}.withDefaults()
	s := &state{}
	s.noticed(mark{1, 10, 1000}, 5, t0)
	var last time.Duration
	for range 10 {
		s.stored(outcome{err: errors.New("x")}, t0)
		pause := s.dueAt(&cfg).Sub(t0)
		if pause < last || pause > maxPause {
			t.Fatalf("pause %s after %s", pause, last)
		}
		last = pause
	}
	if last != maxPause {
		t.Errorf("the last pause is %s, want %s", last, maxPause)
	}
	s.stored(outcome{head: mark{pos: 1}}, t0)
	if s.fault != nil || s.pause != 0 || s.behind() {
		t.Errorf("after success: %+v", s)
	}
}

// A hint settles what is stored whole; it never makes a shard work from a head
// that was not read for sure.
func TestHint(t *testing.T) {
	s := &state{}
	s.noticed(mark{7, 70, 70}, 5, t0)
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
		1: {since: t0.Add(3 * time.Second)},
		2: {since: t0.Add(time.Second)},
		3: {since: t0, working: true},
	}
	s, at := nextDue(pending, &cfg)
	if s != pending[2] || !at.Equal(t0.Add(time.Second+cfg.Linger)) {
		t.Errorf("next is %+v at %s", s, at)
	}
	if s, _ := nextDue(nil, &cfg); s != nil {
		t.Errorf("nothing pending, and %+v is next", s)
	}
}
