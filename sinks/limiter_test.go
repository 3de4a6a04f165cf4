package sinks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// When the insert at the head of the line may begin, of two slots of 100 rows each.
func TestMayBegin(t *testing.T) {
	cfg := Config{Inserts: 2, BatchRows: 100}.withDefaults()
	for _, c := range []struct {
		what    string
		rows    uint64
		inserts int
		weight  uint64
		waited  time.Duration
		behind  int
		want    bool
	}{
		{"nothing is under way", 0, 0, 100, 0, 0, true},
		{"one is, and this one has just come", 50, 1, 50, 0, 0, false},
		{"one is, and this one has waited", 50, 1, 50, cfg.MaxQueueWait, 0, true},
		{"small ones are", 175, 7, 25, cfg.MaxQueueWait, 0, true},
		{"one is, and a few have come behind this one", 50, 1, 50, 0, crowd - 1, false},
		{"one is, and a crowd has come behind this one", 50, 1, 50, 0, crowd, true},
		{"there is no room", 150, 2, 100, time.Hour, 100, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			turns := newLimiter(&cfg)
			turns.rows, turns.inserts = c.rows, c.inserts
			if got := turns.mayBegin(c.weight, c.waited, c.behind); got != c.want {
				t.Errorf("%s: %v", c.what, got)
			}
		})
	}
	cfg.Inserts = 8
	turns := newLimiter(&cfg)
	if turns.inserts = 3; !turns.mayBegin(1, 0, 0) {
		t.Error("three of eight slots are taken, and a fourth was not given")
	}
	if turns.inserts = 4; turns.mayBegin(1, 0, 0) {
		t.Error("half of the slots are taken, and one more was given at once")
	}
}

// Whatever comes, leaves and gives up: never more is under way than there are slots,
// never one more than the calm number begins without having waited or a crowd behind, each in its order, and
// an idle engine leaves no shard in the line.
func TestLimiterAdvances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Inserts: rapid.IntRange(1, 5).Draw(t, "inserts"), BatchRows: 100, MaxQueueWait: 250 * time.Millisecond}.withDefaults()
		turns := newLimiter(&cfg)
		now := t0
		var under []*slot
		var waiting []*slot
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond)
			before := turns.inserts
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				w := &slot{weight: rapid.Uint64Range(1, 100).Draw(t, "weight"), since: now, begun: make(chan struct{})}
				turns.line, waiting = append(turns.line, w), append(waiting, w)
			case 1:
				if len(under) > 0 {
					i := rapid.IntRange(0, len(under)-1).Draw(t, "ends")
					turns.leave(under[i].weight)
					under = append(under[:i:i], under[i+1:]...)
					before--
				}
			}
			turns.advance(now)
			for len(waiting) > 0 && waiting[0].has() {
				if before++; before > turns.unlimited && now.Sub(waiting[0].since) < cfg.MaxQueueWait && len(waiting) <= crowd {
					t.Fatalf("one that waited for %s began as number %d", now.Sub(waiting[0].since), before)
				}
				under, waiting = append(under, waiting[0]), waiting[1:]
			}
			var rows uint64
			for _, w := range under {
				rows += w.weight
			}
			if rows != turns.rows || len(under) != turns.inserts || rows > turns.slots {
				t.Fatalf("%d inserts of %d rows are under way, counted %d of %d, slots %d", len(under), rows, turns.inserts, turns.rows, turns.slots)
			}
			if len(waiting) != len(turns.line) {
				t.Fatalf("%d wait, %d are in the line: out of order", len(waiting), len(turns.line))
			}
			if len(under) == 0 && len(waiting) > 0 {
				t.Fatal("nothing is under way, and a shard waits")
			}
		}
	})
}

// has says whether it got its turn.
func (w *slot) has() bool {
	select {
	case <-w.begun:
		return true
	default:
		return false
	}
}

// Who gives up in the line takes nothing with him, and those behind go on.
func TestLimiter(t *testing.T) {
	cfg := Config{Inserts: 2, BatchRows: 100, MaxQueueWait: time.Millisecond}.withDefaults()
	turns := newLimiter(&cfg)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 { // the second after its patience
		if err := turns.take(ctx, 100); err != nil {
			t.Fatal(err)
		}
	}
	given, giveUp := context.WithCancel(ctx)
	gaveUp := make(chan error)
	go func() { gaveUp <- turns.take(given, 100) }()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := turns.take(ctx, 10); err != nil {
				t.Error(err)
				return
			}
			turns.done(10)
		})
	}
	giveUp()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	turns.done(100)
	turns.done(100)
	wg.Wait()
	if turns.rows != 0 || turns.inserts != 0 || len(turns.line) != 0 {
		t.Errorf("left: %d inserts of %d rows, %d in the line", turns.inserts, turns.rows, len(turns.line))
	}
}
