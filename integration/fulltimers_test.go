package integration

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/maintenance/cleaner"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// fullTimersLimits have a TIMERS of 8 MiB, half of which is its reserve.
var fullTimersLimits = schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 256 << 20, RegistryBytes: 16 << 20, TimersBytes: 8 << 20, Replicas: 1}

// addGroup makes a group.
func (e *timersEnv) addGroup(name string, set func(*timer.Group)) {
	e.t.Helper()
	_, _, err := timers.ApplyGroup(e.t.Context(), e.reg, schemas.DefaultTimerTopic, name, func(g *timer.Group) error {
		g.Slots = 16
		if set != nil {
			set(g)
		}
		return nil
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

// fills creates timers of a group, due in an hour, until one is refused, and returns how many were created and why
// no more are.
func (e *timersEnv) fills(group, prefix string) (n int, why error) {
	e.t.Helper()
	payload := fmt.Appendf(nil, `"%s"`, strings.Repeat("x", 2000))
	for ; n < 20_000; n++ {
		_, _, why = e.Create(e.t.Context(), timers.Draft{Group: group, ID: fmt.Sprint(prefix, n), Due: time.Now().Add(time.Hour), URL: e.url, Payload: payload, User: "of-" + group})
		if why != nil {
			return n, why
		}
	}
	e.t.Fatalf("%d timers were created in a TIMERS of 8 MiB", n)
	return n, nil
}

// use is how full TIMERS is.
func (e *timersEnv) use() fronts.Use {
	e.t.Helper()
	info, err := streams.Info(e.t.Context(), e.reg.JetStream(), schemas.StreamTimers)
	if err != nil {
		e.t.Fatal(err)
	}
	return fronts.Use{Stream: schemas.StreamTimers, Keys: info.State.NumSubjects, Bytes: info.State.Bytes, Limit: info.Config.MaxBytes}
}

// Groups fill TIMERS with timers of an hour ahead. Each holds at most as much as is free, so that another has room. The
// due ones of others are called, none early, also after a restart; those that fill it can be updated, made due, deleted
// and erased; and the room that this makes is used again.
func TestFullTimers(t *testing.T) {
	t.Parallel()
	e := setUpWithin(t, embeddedtest.Start(t), fullTimersLimits).timers()
	ctx := t.Context()
	e.router()
	e.sink()
	stop := e.dispatcher()
	const due = 60
	e.createTimers(due, func(i int) time.Time { return time.Now().Add(10 * time.Second) })
	e.addGroup("greedy", nil)
	n, why := e.fills("greedy", "a")
	if !errors.Is(why, timer.ErrGroupFull) || !strings.Contains(why.Error(), "may hold as much as is free") {
		t.Fatalf("one group, after %d timers: %v", n, why)
	}
	e.create("another", time.Now().Add(time.Hour)) // of another group
	groups := 0
	for ; ; groups++ {
		name := fmt.Sprint("greedy", groups)
		e.addGroup(name, nil)
		some, why := e.fills(name, "a")
		if !errors.Is(why, timer.ErrGroupFull) && !errors.Is(why, fronts.ErrFull) {
			t.Fatal(why)
		}
		if u := e.use(); some == 0 || u.Free(fronts.Grow) < 8<<10 {
			t.Logf("%d timers of one group, %d groups more: %d keys, %d bytes of %d", n, groups, u.Keys, u.Bytes, u.Limit)
			break
		}
	}
	stop()
	e.dispatcher() // over a restart
	eventually(t, 2*time.Minute, func() error {
		if got := e.called(); got < due {
			return fmt.Errorf("%d of %d due timers were called", got, due)
		}
		return nil
	})
	e.mu.Lock()
	for id, calls := range e.calls {
		if calls[0].came.Before(calls[0].Due) || len(calls) > 1 {
			t.Errorf("%s: %+v", id, calls)
		}
	}
	e.mu.Unlock()
	later := time.Now().Add(2 * time.Hour)
	if _, err := e.Update(ctx, "greedy", "a0", timers.Always, timers.Change{Due: &later}); err != nil {
		t.Errorf("update: %v", err)
	}
	if _, err := e.FireNow(ctx, "greedy", "a1"); err != nil {
		t.Errorf("fire: %v", err)
	}
	eventually(t, time.Minute, func() error {
		if got := e.called(); got != due+1 {
			return fmt.Errorf("%d were called", got)
		}
		return nil
	})
	for i := 2; i < n/2; i++ {
		if _, err := e.Delete(ctx, "greedy", fmt.Sprint("a", i), timers.Always); err != nil {
			t.Fatalf("delete %d of %d: %v", i, n, err)
		}
	}
	x := e.eraser()
	job, err := x.Start(ctx, erasure.Request{Topic: schemas.DefaultTimerTopic, Users: []string{"of-greedy0"}})
	if err == nil {
		_, err = x.Run(ctx, job.Topic, job.ID)
	}
	if err != nil {
		t.Errorf("erase: %v", err)
	}
	if tm, err := e.Get(ctx, "greedy0", "a0"); err != nil || tm.State != timer.StateCancelled {
		t.Errorf("an erased timer: %+v, %v", tm, err)
	}
	before := e.use()
	c := e.cleaner(func(c *cleaner.Config) { c.MinAge = 15 * time.Second })
	e.clean(c, time.Minute)
	after := e.use()
	if after.Bytes >= before.Bytes || after.Keys >= before.Keys {
		t.Errorf("what is over left TIMERS with %+v, and it had %+v", after, before)
	}
	more, why := e.fills("greedy", "b")
	if more == 0 {
		t.Errorf("no room was made: %v", why)
	}
	t.Logf("%d more after the deletes and the erasure, until: %v", more, why)
	if err := streams.Bound(ctx, e.reg.JetStream(), schemas.StreamTimers, 32<<20); err != nil {
		t.Fatal(err)
	}
	round := 0
	eventually(t, time.Minute, func() error { // a writer goes by a look of the last second
		round++
		if _, why := e.fills("greedy", fmt.Sprint("c", round, "-")); !errors.Is(why, timer.ErrGroupFull) {
			t.Fatal(why)
		}
		if u := e.use(); u.Bytes < after.Bytes+4<<20 {
			return fmt.Errorf("a larger TIMERS holds %d bytes", u.Bytes)
		}
		return nil
	})
	e.verified(schemas.DefaultTimerTopic)
}

// Nothing stores, and SHARDS is full, so that nothing is routed any more: calls are of TIMERS alone, and are made.
func TestTimersWhileShardsIsFull(t *testing.T) {
	t.Parallel()
	limits := fullTimersLimits
	limits.ShardsBytes = 2 << 20
	e := setUpWithin(t, embeddedtest.Start(t), limits, newTopic("app")).timers()
	e.router()
	p := e.producer("app")
	text := make([]byte, 30<<10) // of which no codec makes less than half
	bytesOf := func(stream string) uint64 {
		info, err := streams.Info(t.Context(), e.reg.JetStream(), stream)
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Bytes
	}
	eventually(t, time.Minute, func() error { // events come as fast as the router takes them, until it cannot
		events, shards := bytesOf(schemas.StreamEvents), bytesOf(schemas.StreamShards)
		if events > 4<<20 && shards > uint64(limits.ShardsBytes)/2 {
			return nil
		}
		for range 20 {
			if events > 16<<20 {
				break
			}
			_, _ = rand.Read(text)
			p.Log(schemas.Event{Message: hex.EncodeToString(text)})
			e.flush(p)
		}
		return fmt.Errorf("EVENTS has %d bytes, SHARDS %d: it does not fill", events, shards)
	})
	e.dispatcher()
	const n = 200
	e.createTimers(n, func(int) time.Time { return time.Now() })
	eventually(t, 2*time.Minute, func() error {
		s, err := e.Status(t.Context())
		if err == nil && (s[0].Done < n || e.called() < n) {
			err = fmt.Errorf("%d were called: %+v", e.called(), s[0])
		}
		return err
	})
	e.sink()
	e.stored(schemas.DefaultTimerTopic, 3*n, 3*time.Minute)
	e.verified(schemas.DefaultTimerTopic)
}
