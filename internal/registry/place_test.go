package registry

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// monthsFrom returns n months, the first of them m.
func monthsFrom(m schemas.Month, n int) (months []schemas.Month) {
	for ; n > 0; n-- {
		months = append(months, m)
		m = m.Next()
	}
	return months
}

// ranges prepares a lane's shard of each month, for events from noon of its first day.
func ranges(t *testing.T, r *Registry, topic *schemas.Topic, lane int, months []schemas.Month) []Range {
	t.Helper()
	var all []Range
	for _, m := range months {
		s, err := r.Prepare(timeout(t), topic, m, lane, Point{}, noon)
		if err != nil {
			t.Fatal(err)
		}
		lo := m.Start() + int64(12*time.Hour)
		all = append(all, Range{Shard: &s, Lo: lo, Hi: lo + 1, Rows: 2, Bytes: 20})
	}
	return all
}

// Shards of many new months are written in one commit, with their
// ranges: a disk write for all of them, and not two for each.
func TestManyMonthsAreOneCommit(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	topic := schemas.NewTopic("app")
	var mu sync.Mutex
	commits := map[string]int{} // messages, by batch
	sub, err := r.js.Conn().Subscribe(schemas.KVSubject(">"), func(msg *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		commits[msg.Header.Get("Nats-Batch-Id")]++
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	months := monthsFrom(201401, 151)
	all := ranges(t, r, &topic, 0, months)
	for _, c := range all {
		if !c.Shard.Unwritten() {
			t.Fatalf("%s is written before its range is known", c.Shard.Name())
		}
	}
	if err := r.Widen(ctx, noon, all...); err != nil {
		t.Fatal(err)
	}
	if err := r.js.Conn().FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(commits) != 1 || commits[""] != 0 {
		t.Errorf("%d commits for %d months: %v", len(commits), len(months), commits)
	}
	shards, err := r.Shards(ctx, "app", 0)
	if err != nil || len(shards) != len(months) {
		t.Fatalf("%d shards, want %d (%v)", len(shards), len(months), err)
	}
	for i, s := range shards {
		lo := s.Month.Start() + int64(12*time.Hour)
		if s.Month != months[i] || s.rev != all[i].Shard.rev || s.Unwritten() || all[i].Shard.Unwritten() || !s.Overlaps(lo, lo+1) || s.Rows != 2 || s.Status != Active {
			t.Fatalf("%+v", s)
		}
		if again, err := r.Prepare(ctx, &topic, s.Month, 0, Point{}, noon); err != nil || again.ID != s.ID {
			t.Fatalf("the lane's shard of %s is %s, then %s (%v)", s.Month, s.ID, again.ID, err)
		}
	}
}

// Lanes of one topic that begin the same months at once all get theirs, and no
// change of the others' is lost; of two routers with the same lane one does.
func TestLanesBeginMonthsAtOnce(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	topic := schemas.NewTopic("app")
	months := monthsFrom(202001, 30)
	const lanes, routers = 4, 2
	var mu sync.Mutex
	got := map[int][]Range{}
	var wg sync.WaitGroup
	prepared := make([][]Range, lanes*routers)
	for i := range prepared {
		prepared[i] = ranges(t, r, &topic, i%lanes, months)
	}
	for i, all := range prepared {
		lane := i % lanes
		wg.Go(func() {
			err := r.Widen(ctx, noon, all...)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				got[lane] = append(got[lane], all...)
			} else if !errors.Is(err, ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	shards, err := r.Shards(ctx, "app", 0)
	if err != nil || len(shards) != lanes*len(months) {
		t.Fatalf("%d shards, want %d (%v)", len(shards), lanes*len(months), err)
	}
	for lane := range lanes {
		if len(got[lane]) != len(months) {
			t.Errorf("lane %d was given %d shards, want %d", lane, len(got[lane]), len(months))
		}
		for _, c := range got[lane] {
			h, err := r.Head(ctx, "app", c.Shard.Month)
			if err != nil || h.Active[lane] != c.Shard.ID || !slices.ContainsFunc(shards, func(s Shard) bool { return s.ID == c.Shard.ID && s.rev == c.Shard.rev }) {
				t.Errorf("lane %d of %s: the head entry says %s, the shard is %s (%v)", lane, c.Shard.Month, h.Active[lane], c.Shard.ID, err)
			}
		}
	}
	// Some are wider already, one is sealed: nothing is written for the former, and the latter is refused.
	if err := r.Widen(ctx, noon, got[0]...); err != nil {
		t.Error(err)
	}
	s := *got[0][0].Shard
	if _, err := r.Rotate(ctx, s, "rows", Point{}, noon); err != nil {
		t.Fatal(err)
	}
	if err := r.Seal(ctx, s.Ref(), Point{}, 1, 1, 1); err != nil {
		t.Fatal(err)
	}
	got[0][0].Hi += int64(time.Hour)
	if err := r.Widen(ctx, noon, got[0][0]); !errors.Is(err, ErrConflict) {
		t.Errorf("a sealed shard is widened: %v", err)
	}
}
