package dispatch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// TestUpdateRacesFire updates timers at about their due time: each fires at the new time only, or the
// update is refused and it fires at the old time only. Half as many more are updated a second before
// their due time: those fire at the new time only.
func TestUpdateRacesFire(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.dispatcher(nil)
	races := sized("ALMANAC_TIMERS_RACES", 200)
	n := races + races/2
	base := time.Now().Add(2*time.Second + time.Duration(n)*10*time.Millisecond)
	due := func(i int) time.Time { return base.Add(time.Duration(i) * 2 * time.Millisecond) }
	e.createAll(n, due)
	moved := make([]bool, n)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var wg sync.WaitGroup
	for i := range n {
		before := 75*time.Millisecond - time.Duration(rnd.Int64N(int64(150*time.Millisecond)))
		wg.Go(func() {
			if i >= races {
				before = time.Second
			}
			at := time.NewTimer(time.Until(due(i)) - before)
			defer at.Stop()
			select {
			case <-at.C:
			case <-e.ctx.Done():
				return
			}
			later := time.Now().Add(3 * time.Second)
			_, err := e.Update(e.ctx, "g", "id"+strconv.Itoa(i), timers.IfRevision(1), timers.Change{Due: &later})
			switch {
			case err == nil:
				moved[i] = true
			case i >= races && time.Now().Before(due(i)), // a busy machine may be late with it
				!errors.Is(err, timer.ErrFiring) && !errors.Is(err, timer.ErrNotFound):
				t.Errorf("id%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	e.allOver()
	count := 0
	for i := range n {
		calls := e.got("id" + strconv.Itoa(i))
		want := int64(1)
		if moved[i] {
			want = 2
		}
		if moved[i] && i < races {
			count++
		}
		if len(calls) != 1 || calls[0].Revision != want {
			t.Errorf("id%d, moved %v: %+v", i, moved[i], calls)
		}
		for _, c := range calls {
			if c.came.Before(c.Due) {
				t.Errorf("id%d came %s early", i, c.Due.Sub(c.came))
			}
		}
	}
	t.Logf("%d of %d updates were before the fire", count, races)
}

// TestKills kills dispatchers while timers fall due. Every one is called, never early; what
// is called twice has the same life, revision and attempt.
func TestKills(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	n, kills := sized("ALMANAC_TIMERS_KILLED", 300), sized("ALMANAC_TIMERS_KILLS", 2)
	e.dispatcher(nil)
	span := time.Duration(kills) * 3 * time.Second
	base := time.Now().Add(time.Second + time.Duration(n)*10*time.Millisecond)
	e.createAll(n, func(i int) time.Time { return base.Add(span * time.Duration(i) / time.Duration(n)) })
	for k := range kills {
		_, _, kill := e.dispatcher(nil)
		e.until("it is its turn", func() bool { return time.Since(base) > span*time.Duration(k+1)/time.Duration(kills+1) })
		kill() // its connection is gone: what it claimed stays firing
	}
	e.allOver()
	twice := 0
	for i := range n {
		calls := e.got(fmt.Sprintf("id%d", i))
		if len(calls) == 0 {
			t.Errorf("id%d was not called", i)
			continue
		}
		for _, c := range calls {
			if c.came.Before(c.Due) || c.key != calls[0].key {
				t.Errorf("id%d: %+v", i, calls)
			}
		}
		if len(calls) > 1 {
			twice++
		}
		h, err := e.History(e.ctx, "g", fmt.Sprintf("id%d", i))
		if err != nil || h[0].Op != timer.Created || h[len(h)-1].Op != timer.Done {
			t.Errorf("id%d: %+v, %v", i, h, err)
		}
	}
	t.Logf("%d of %d were called twice, after %d kills", twice, n, kills)
}
