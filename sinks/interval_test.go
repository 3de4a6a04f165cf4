package sinks

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// How long shards rest by how many they are and what an insert of each takes, with
// two inserts at once.
func TestRestOf(t *testing.T) {
	cfg := Config{Inserts: 2}.withDefaults()
	for _, c := range []struct {
		what   string
		shards int
		each   time.Duration
		want   time.Duration
	}{
		{"no insert yet", 4, 0, 0},
		{"one shard, quick inserts", 1, 50 * time.Millisecond, 100 * time.Millisecond},
		{"a topic, quick inserts", 4, 50 * time.Millisecond, 400 * time.Millisecond},
		{"a topic at full load", 4, 500 * time.Millisecond, cfg.MinInterval},
		{"two topics at full load", 8, 500 * time.Millisecond, 2 * cfg.MinInterval},
		{"ten topics, an engine at leisure", 40, 20 * time.Millisecond, 1600 * time.Millisecond},
		{"ten topics that keep it busy", 40, 50 * time.Millisecond, 4 * time.Second},
		{"ten topics at full load", 40, 500 * time.Millisecond, cfg.MaxInterval},
		{"five hundred topics", 2000, 20 * time.Millisecond, cfg.MaxInterval},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := intervalOf(time.Duration(c.shards)*c.each, c.shards, &cfg); got != c.want {
				t.Errorf("%s: %s, want %s", c.what, got, c.want)
			}
		})
	}
	cfg.Inserts = 8
	if got := intervalOf(40*50*time.Millisecond, 40, &cfg); got != time.Second {
		t.Errorf("ten topics on eight processors: %s", got)
	}
	cfg.MinInterval = time.Minute
	if got := intervalOf(time.Hour, 40, &cfg); got != time.Minute {
		t.Errorf("a MinInterval above MaxInterval: %s", got)
	}
}

// What ends rests is longer where they are.
func TestIdleAfter(t *testing.T) {
	cfg := Config{Inserts: 2}.withDefaults()
	for shards, want := range map[int]time.Duration{1: cfg.IdleAfter, 4: cfg.IdleAfter, 40: cfg.MaxInterval / idleShare} {
		pending := map[schemas.Shard]*state{}
		for i := range shards {
			pending[schemas.Shard(i)] = &state{lastAt: t0, took: [2]time.Duration{time.Second, time.Second}}
		}
		if got := cfg.interval(pending).idleAfter.Sub(t0); got != want {
			t.Errorf("%d shards: %s, want %s", shards, got, want)
		}
	}
}

// Where inserts take long a shard rests until its batch is full, or no more comes to
// any shard.
func TestRest(t *testing.T) {
	cfg := Config{Inserts: 2, MinInterval: 3 * time.Second}.withDefaults()
	s, other := &state{linger: lingering}, &state{working: true, linger: lingering}
	pending := map[schemas.Shard]*state{1: s, 2: other}
	due := func(what string, want time.Time) {
		t.Helper()
		if got := s.dueAt(&cfg, cfg.interval(pending)); !got.Equal(want) {
			t.Errorf("%s: due %s after the last insert, want %s", what, got.Sub(t0), want.Sub(t0))
		}
	}
	took := func(d time.Duration) {
		s.beganAt = t0
		s.stored(outcome{head: s.tail, counted: true, took: d}, t0)
	}
	pos, rows := uint64(0), uint64(0)
	more := func(n uint64, at time.Time) {
		pos, rows = pos+1, rows+n
		s.noticed(position{pos, rows, 0}, pos, at)
	}
	more(10, t0)
	took(time.Second)
	last := t0.Add(1800 * time.Millisecond)
	more(cfg.BatchRows/2, last)
	due("one slow insert is not a load", last.Add(cfg.FirstWait))
	took(time.Second)
	for i := range schemas.Shard(100) {
		pending[1000+i] = &state{fault: ErrGap, took: [2]time.Duration{time.Minute, time.Minute}}
	}
	more(cfg.BatchRows/2, last)
	due("half a batch after two slow inserts, beside shards that failed", t0.Add(2*time.Second))
	more(cfg.BatchRows/2, last)
	due("a full batch", last)
	took(time.Second)
	more(cfg.BatchRows/2, t0.Add(time.Second))
	due("no more comes", t0.Add(time.Second+cfg.IdleAfter))
	other.noticed(position{1, 1, 1}, 1, t0.Add(time.Second+cfg.IdleAfter/2))
	due("another shard is still written to", t0.Add(time.Second+cfg.IdleAfter*3/2))
	more(1, t0.Add(2*time.Second))
	due("more has come", t0.Add(2*time.Second))
	took(time.Minute)
	took(time.Minute)
	more(1, t0.Add(cfg.MinInterval))
	due("very slow inserts", t0.Add(cfg.MinInterval+cfg.FirstWait))
	more(1, t0.Add(cfg.MinInterval-cfg.IdleAfter/2))
	took(100 * time.Millisecond)
	more(cfg.BatchRows/2, t0)
	due("a quick one again", t0.Add(lingering/2))
}
