package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// frontDiffers fails the test unless verify finds so many timers that differ, and says each of the words.
func (e *timersEnv) frontDiffers(n int, words ...string) {
	e.t.Helper()
	rep := e.fronts(schemas.DefaultTimerTopic)
	said := strings.Join(rep.Problems, "\n")
	if f := rep.Topics[0].Front; f == nil || f.Differ != n || rep.OK() {
		e.t.Fatalf("%+v, expected %d that differ; %s", f, n, said)
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			e.t.Errorf("verify does not say %q: %s", w, said)
		}
	}
}

// repaired repairs, killed between any two steps, until nothing is left to be done.
func (e *timersEnv) repaired() {
	e.t.Helper()
	eventually(e.t, time.Minute, func() error {
		e.killed()
		p := e.plan()
		waits := slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "nothing is restored") })
		if waits || p.Todo() > 0 {
			return fmt.Errorf("%+v, %q", p.Actions, p.Notes)
		}
		return nil
	})
}

// onTime fails the test unless each timer was called so often, at least or exactly, none early and each attempt under one key.
func (e *timersEnv) onTime(least bool, n int, ids ...string) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		calls := e.calls[id]
		if len(calls) < n || !least && len(calls) > n {
			e.t.Errorf("%s was called %d times, expected %d", id, len(calls), n)
		}
		for _, c := range calls {
			if c.came.Before(c.Due) {
				e.t.Errorf("%s came %s early", id, c.Due.Sub(c.came))
			}
		}
	}
}

func named(name string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(name, "-", i))
	}
	return ids
}

// fireAll makes timers due now and waits until each is done.
func (e *timersEnv) fireAll(ids ...string) {
	e.t.Helper()
	for _, id := range ids {
		if _, err := e.FireNow(e.t.Context(), "g", id); err != nil {
			e.t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range ids {
		e.is(id, timer.StateDone)
	}
}

// TIMERS is gone. Nothing is written until repair has brought back what is pending by its history, killed between
// any two steps. What was firing is called again under its key, what ended or was erased is not, and nothing
// comes back while an erasure is under way.
func TestRepairLostTimers(t *testing.T) {
	t.Parallel()
	e := running(t).timers()
	const topic, many = schemas.DefaultTimerTopic, 20
	hold, hung := make(chan struct{}), make(chan struct{}, 10)
	e.status = func(c timerCall) int {
		switch {
		case c.ID == "fails":
			return 500
		case c.ID == "hangs" && len(e.of("hangs")) == 1:
			hung <- struct{}{}
			<-hold
		}
		return 200
	}
	defer close(hold)
	stop := e.dispatcher()
	later := time.Now().Add(time.Hour)
	for _, id := range named("done", 3) {
		e.create(id, time.Now())
		e.is(id, timer.StateDone)
	}
	for _, id := range named("waits", many) {
		e.create(id, later)
	}
	e.create("gone", later)
	if _, err := e.Delete(t.Context(), "g", "gone", timers.Always); err != nil {
		t.Fatal(err)
	}
	e.create("moved", later)
	moved := later.Add(time.Hour)
	if _, err := e.Update(t.Context(), "g", "moved", timers.IfRevision(1), timers.Change{Due: &moved}); err != nil {
		t.Fatal(err)
	}
	fails := timers.Draft{Group: "g", ID: "fails", Due: soon(time.Now()), URL: e.url, Retry: &timer.Policy{Attempts: 3, Initial: time.Hour}}
	if _, _, err := e.Create(t.Context(), fails); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() error {
		if tm, err := e.Get(t.Context(), "g", "fails"); err != nil || tm.Op != timer.Retry {
			return fmt.Errorf("%+v, %w", tm, err)
		}
		return nil
	})
	if _, _, err := e.Create(t.Context(), timers.Draft{Group: "g", ID: "erased", Due: later, URL: e.url, User: "u-7"}); err != nil {
		t.Fatal(err)
	}
	const rows = 3*3 + many + 2 + 2 + 3
	e.stored(topic, rows+1, time.Minute)
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: topic, Users: []string{"u-7"}})
	if err == nil {
		_, err = x.Run(t.Context(), job.Topic, job.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.createSoon(timers.Draft{Group: "g", ID: "hangs", Due: time.Now(), URL: e.url, Timeout: timer.MaxTimeout}); err != nil {
		t.Fatal(err)
	}
	<-hung
	stop() // what it claimed stays firing: on a busy machine the call might time out below
	e.stored(topic, rows+1+2, time.Minute)
	before, err := e.Get(t.Context(), "g", "fails")
	if err != nil {
		t.Fatal(err)
	}
	e.verified(topic)

	if err := e.js().DeleteStream(t.Context(), schemas.StreamTimers); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Setup(t.Context(), e.srv.NC(), schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := timers.Open(t.Context(), e.connect(), e.reg, topic, timers.Config{}); !errors.Is(err, fronts.ErrLost) {
		t.Fatalf("timers of a lost front were opened: %v", err)
	}
	e.dispatcher()
	e.frontDiffers(many+3, `timer "waits-0" of group "g": TIMERS does not have it, ClickHouse says that it is pending`, `timer "hangs" of group "g": TIMERS does not have it, ClickHouse says that it is firing`)
	made := e.plan()
	entry, err := e.reg.Enter(t.Context(), ledger.Erasure{
		ID: "e-1", Topic: topic, Cond: "user_id = {p1:String}", Params: map[string]string{"p1": "no-one"}, To: 1, Schema: 1, Front: schemas.StreamTimers, State: ledger.Erasing,
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := e.plan(); !does(made, repair.AdvanceFront) || !does(made, repair.RestoreTimers) || does(p, repair.RestoreTimers) {
		t.Errorf("planned before %+v, and during an erasure %+v", made.Actions, p.Actions)
	}
	if err := e.repairer().Apply(t.Context(), made, func(*repair.Action, error) {}); err == nil || !strings.Contains(err.Error(), entry.ID) {
		t.Errorf("a plan from before the erasure: %v", err)
	}
	if did, err := e.eraser().Run(t.Context(), topic, entry.ID); err != nil || did.State != ledger.Erased {
		t.Fatalf("the erasure ended as %+v, %v", did, err)
	}
	e.repaired()

	for _, id := range named("waits", many) {
		if tm := e.is(id, timer.StatePending); !tm.Due.Equal(later.Truncate(time.Nanosecond)) || tm.Revision != 1 || string(tm.Payload) != fmt.Sprintf(`{"of":%q}`, id) || tm.CreatedAt.IsZero() {
			t.Errorf("%s came back as %+v", id, tm)
		}
	}
	if tm := e.is("moved", timer.StatePending); tm.Revision != 2 || !tm.Due.Equal(moved) {
		t.Errorf("moved came back as %+v", tm)
	}
	if tm := e.is("fails", timer.StatePending); tm.Attempt != 1 || !tm.Due.Equal(before.Due) || tm.Retry == nil || tm.Life != before.Life {
		t.Errorf("fails came back as %+v, it was %+v", tm, before)
	}
	e.is("hangs", timer.StateDone)
	if calls := e.of("hangs"); len(calls) != 2 || calls[0].key != calls[1].key {
		t.Errorf("the call that was under way was made as %+v", calls)
	}
	kept := e.kept()
	for _, id := range append(named("done", 3), "gone", "erased") {
		if kept[id] {
			t.Errorf("%s is in TIMERS again", id)
		}
	}
	e.fireAll(append(named("waits", many), "moved")...)
	e.onTime(true, 1, append(named("waits", many), "moved", "hangs", "fails")...)
	e.onTime(false, 1, named("done", 3)...)
	e.onTime(false, 0, "gone", "erased")
	e.verified(topic)
}

// of are the calls of a timer.
func (e *timersEnv) of(id string) []timerCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls[id])
}

// timersOnDisk are timers whose NATS can be stopped and started at one port.
func timersOnDisk(t *testing.T) (*onDisk, *timersEnv) {
	t.Helper()
	d := startOnDisk(t)
	if _, err := fmt.Sscanf(d.srv.NATSURL, "nats://127.0.0.1:%d", &d.port); err != nil {
		t.Fatal(err)
	}
	d.router()
	d.sink()
	return d, d.env.timers()
}

// TIMERS loses its end while all parts are at work, and another process creates timers before it is noticed. Repair
// brings back what is pending by its history, ends what ended, and gives the young timers sequences of their own.
func TestRepairCutTimers(t *testing.T) {
	t.Parallel()
	d, e := timersOnDisk(t)
	const many, ended, young = 40, 5, 3
	later := time.Now().Add(time.Hour)
	for _, id := range append(named("waits", many), named("ends", ended)...) {
		e.create(id, later)
	}
	e.dispatcher()
	e.fireAll(named("ends", ended)...)
	e.stored(schemas.DefaultTimerTopic, many+4*ended, time.Minute)
	d.cut(schemas.StreamTimers)
	for _, id := range named("young", young) {
		eventually(t, time.Minute, func() error {
			_, _, err := e.Create(t.Context(), timers.Draft{Group: "g", ID: id, Due: later, URL: e.url, Payload: fmt.Appendf(nil, `{"of":%q}`, id)})
			return err
		})
	}
	if rep := e.fronts(schemas.DefaultTimerTopic); rep.OK() || rep.Topics[0].Front.Differ == 0 {
		t.Errorf("after the cut: %+v %+v", rep.Topics[0], rep.Topics[0].Front)
	}
	if p := e.plan(); !does(p, repair.AdvanceFront) || !does(p, repair.PutAgain) || !does(p, repair.RestoreTimers) {
		t.Errorf("planned: %+v", p.Actions)
	}
	e.repaired()
	for _, id := range append(named("waits", many), named("young", young)...) {
		if tm := e.is(id, timer.StatePending); !tm.Due.Equal(later.Truncate(time.Nanosecond)) || string(tm.Payload) != fmt.Sprintf(`{"of":%q}`, id) {
			t.Errorf("%s came back as %+v", id, tm)
		}
	}
	e.fireAll(append(named("waits", many), named("young", young)...)...)
	e.onTime(true, 1, append(named("waits", many), named("young", young)...)...)
	e.onTime(false, 1, named("ends", ended)...)
	e.verified(schemas.DefaultTimerTopic)
}

// TIMERS is replaced by an older copy. What ended since is not called again, neither before repair nor after it.
func TestRepairOlderTimers(t *testing.T) {
	t.Parallel()
	d, e := timersOnDisk(t)
	const ended, waits, since = 10, 10, 5
	later := time.Now().Add(time.Hour)
	for _, id := range append(append(named("ends", ended), named("waits", waits)...), "gone") {
		e.create(id, later)
	}
	const first = ended + waits + 1
	e.stored(schemas.DefaultTimerTopic, first, time.Minute)
	copied := filepath.Join(t.TempDir(), "TIMERS")
	d.stop()
	dirs, err := filepath.Glob(filepath.Join(d.dir, "jetstream", "*", "streams", schemas.StreamTimers))
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	if err := os.CopyFS(copied, os.DirFS(dirs[0])); err != nil {
		t.Fatal(err)
	}
	d.run()
	eventually(t, 20*time.Second, func() error { // the connection comes back
		_, err := d.reg.Topics(t.Context())
		return err
	})
	e.dispatcher()
	e.fireAll(named("ends", ended)...)
	for _, id := range named("since", since) {
		e.create(id, later)
	}
	if _, err := e.Delete(t.Context(), "g", "gone", timers.Always); err != nil {
		t.Fatal(err)
	}
	e.stored(schemas.DefaultTimerTopic, first+3*ended+since+1, time.Minute)
	d.stop()
	if err := os.RemoveAll(dirs[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dirs[0], os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	d.run()
	eventually(t, time.Minute, func() error { _, err := d.reg.Topics(t.Context()); return err })
	e.frontDiffers(ended+since+1, `timer "ends-0" of group "g": it is pending in TIMERS`, `timer "since-0" of group "g": TIMERS does not have it`, `timer "gone" of group "g": it is pending in TIMERS`)
	if p := e.plan(); !does(p, repair.AdvanceFront) || !does(p, repair.DropEnded) || !does(p, repair.RestoreTimers) {
		t.Errorf("planned: %+v", p.Actions)
	}
	e.repaired()
	e.fireAll(append(named("waits", waits), named("since", since)...)...)
	e.onTime(true, 1, append(named("waits", waits), named("since", since)...)...)
	e.onTime(false, 1, named("ends", ended)...)
	e.onTime(false, 0, "gone")
	e.verified(schemas.DefaultTimerTopic)
}
