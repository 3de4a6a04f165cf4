package dispatch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
	"unique"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/timers/dispatch/wheel"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// called remembers under which group each timer was called.
type called struct {
	mu sync.Mutex
	by map[string][]string
}

func (c *called) Call(_ context.Context, g *timer.Group, r *timer.Record, _ *timer.Spec) (timer.Outcome, timer.Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string][]string{}
	}
	c.by[r.Key.Group+"/"+r.Key.ID] = append(c.by[r.Key.Group+"/"+r.Key.ID], g.Name)
	return timer.Outcome{Kind: timer.Success, Status: 200}, timer.Call{Status: 200}, nil
}

func (c *called) of(id string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.by[id])
}

// unstarted returns a dispatcher whose lanes the test runs itself.
func (e *env) unstarted(c Caller) *Dispatcher {
	e.t.Helper()
	d, err := New(e.ctx, e.srv.NC(), Config{Registry: e.reg, Caller: c})
	if err != nil {
		e.t.Fatal(err)
	}
	d.members = e.reg.Join(e.ctx, Role)
	if _, err := d.wanted(e.ctx); err != nil { // which reads the groups
		e.t.Fatal(err)
	}
	if _, err := d.clock.Now(e.ctx, streams.TimeOf(d.js, schemas.StreamTimers)); err != nil {
		e.t.Fatal(err)
	}
	return d
}

// runs runs a lane until the test ends.
func (e *env) runs(l *lane) {
	ctx, cancel := context.WithCancel(e.ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.run(ctx, ctx, &wg) })
	e.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

func (e *env) entry(group, id string) wheel.Entry {
	e.t.Helper()
	g, err := e.reg.TimerGroups(e.ctx, schemas.DefaultTimerTopic)
	if err != nil {
		e.t.Fatal(err)
	}
	i := slices.IndexFunc(g, func(g timer.Group) bool { return g.Name == group })
	key, err := g[i].Key(id, kinds.FrontLanes)
	if err != nil {
		e.t.Fatal(err)
	}
	return wheel.Entry{Key: key.Subject(), Group: unique.Make(group)}
}

// TestEntriesEndWithTheirRun gives entries back to a run of a lane that has ended, also one of a paused group. The
// lane's next run calls what it has loaded by itself, each timer under its own group.
func TestEntriesEndWithTheirRun(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.group("paused", func(g *timer.Group) { g.Paused = true })
	c := &called{}
	d := e.unstarted(c)
	topic, err := e.reg.Topic(e.ctx, schemas.DefaultTimerTopic)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	e.create(timers.Draft{ID: "p", Group: "paused", Due: now})
	e.create(timers.Draft{ID: "x", Due: now})
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	for n := range topic.Lanes {
		l := newLane(d, laneID{topic.Name, n, topic.First}, topic.Lanes)
		old := newRun(l)
		for i := range 2*takeAtOnce + 1 { // Go takes either: a channel with room, or the end
			name := "paused"
			if i%2 == 0 {
				name = "g"
			}
			old.again(ended, wheel.Entry{Key: schemas.TimerSubject(topic.Name, n, name, n, "gone"), Seq: 1 << 40, Group: unique.Make(name)}, 0)
		}
		e.runs(l)
	}
	e.state("x", timer.StateDone)
	e.create(timers.Draft{ID: "y", Due: time.Now()})
	e.state("y", timer.StateDone)
	for id, want := range map[string][]string{"g/x": {"g"}, "g/y": {"g"}, "paused/p": nil} {
		if got := c.of(id); !slices.Equal(got, want) {
			t.Errorf("%s was called under %q, expected %q", id, got, want)
		}
	}
}

// TestAGroupIsOfTheRecord holds that a call goes by the group of the record that was claimed, whatever place its
// entry had taken.
func TestAGroupIsOfTheRecord(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.group("other", func(*timer.Group) {})
	c := &called{}
	d := e.unstarted(c)
	e.create(timers.Draft{ID: "x", Due: time.Now()})
	entry := e.entry("g", "x")
	m, err := d.w.Last(e.ctx, entry.Key)
	if err != nil {
		t.Fatal(err)
	}
	r, err := parse(m)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := d.groups.get(schemas.DefaultTimerTopic, "other")
	at, _, _ := d.limits.take(&other, "h", time.Now())
	d.attempt(e.ctx, e.ctx, started{newRun(newLane(d, laneID{topic: schemas.DefaultTimerTopic}, 1)), entry, at}, r)
	if got := c.of("g/x"); !slices.Equal(got, []string{"g"}) {
		t.Errorf("called under %q", got)
	}
}

// TestOwnClaimIsLookedAtAgain has a claim of this dispatcher come while it is worked on: its end may be given up, so
// it is on the wheel, for a time when no call lasts any more.
func TestOwnClaimIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	d := e.unstarted(&called{})
	e.create(timers.Draft{ID: "x", Due: time.Now()})
	m, err := d.w.Last(e.ctx, e.entry("g", "x").Key)
	if err != nil {
		t.Fatal(err)
	}
	r, err := parse(m)
	if err != nil {
		t.Fatal(err)
	}
	l := newRun(newLane(d, laneID{topic: schemas.DefaultTimerTopic}, 1))
	claimed, _ := d.claim(e.ctx, started{run: l}, r, d.clock.Passed())
	if claimed == nil {
		t.Fatal("no claim")
	}
	m, err = d.w.Last(e.ctx, m.Subject)
	if err != nil {
		t.Fatal(err)
	}
	l.apply(m)
	if due, ok := l.wheel.Next(); !ok || due != m.Time.Add(claimWait).UnixNano() {
		t.Errorf("it is looked at again at %d (%v), expected %s after it was stored", due, ok, claimWait)
	}
	if again, wait := d.claim(e.ctx, started{run: l}, claimed, d.clock.Passed()); again != nil || wait <= 0 {
		t.Errorf("it is worked on: %+v, looked at again after %s", again, wait)
	}
	d.flights.remove(claimed.Claim)
	if again, _ := d.claim(e.ctx, started{run: l}, claimed, d.clock.Passed()); again == nil || again.Attempt != 1 {
		t.Errorf("it was given up, and is not called again: %+v", again)
	}
}
