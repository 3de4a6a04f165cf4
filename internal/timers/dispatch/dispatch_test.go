package dispatch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

func TestCalledOnceAndNeverEarly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.dispatcher(nil)
	e.create(timers.Draft{ID: "soon", Due: time.Now().Add(200 * time.Millisecond)})
	n := sized("ALMANAC_TIMERS", 300)
	spread := time.Duration(n) * 5 * time.Millisecond
	began := time.Now()
	e.createAll(n, func(i int) time.Time {
		return began.Add(time.Second + 2*spread + spread*time.Duration(i)/time.Duration(n))
	})
	e.allOver()
	if got := e.called(); got != n+1 {
		t.Errorf("%d timers were called, want %d", got, n+1)
	}
	for i := range n {
		calls := e.got(fmt.Sprintf("id%d", i))
		if len(calls) != 1 {
			t.Fatalf("id%d was called %d times", i, len(calls))
		}
		if c := calls[0]; c.came.Before(c.Due) {
			t.Errorf("id%d came %s early", i, c.Due.Sub(c.came))
		}
	}
	if tm := e.state("soon", timer.StateDone); tm.Attempt != 1 || tm.Revision != 1 || tm.Status != 200 {
		t.Errorf("%+v", tm)
	}
}

// TestOneID holds that an id of two groups are two timers, even in a slot of one number, and what
// revisions do.
func TestOneID(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.group("h", func(*timer.Group) {})
	due := time.Now().Add(time.Hour)
	one := e.create(timers.Draft{ID: "x", Due: due})
	other := e.create(timers.Draft{ID: "x", Group: "h", Due: due})
	if one.Slot != other.Slot || one.Life == other.Life {
		t.Errorf("%+v, %+v", one, other)
	}
	if same := e.create(timers.Draft{ID: "x", Due: due}); same.Life != one.Life || same.Revision != 1 {
		t.Errorf("the same content made %+v", same)
	}
	if _, _, err := e.Create(e.ctx, timers.Draft{Group: "g", ID: "x", URL: e.url, Due: due.Add(1)}); !errors.Is(err, timer.ErrExists) {
		t.Errorf("another content: %v", err)
	}
	if r := e.create(timers.Draft{ID: "x", Due: due.Add(1), Replace: true}); r.Revision != 2 || r.Life != one.Life {
		t.Errorf("replaced: %+v", r)
	}
	if _, err := e.Update(e.ctx, "g", "x", timers.IfRevision(1), timers.Change{Due: &due}); !errors.Is(err, timer.ErrRevision) {
		t.Errorf("an update of revision 1: %v", err)
	}
	for _, g := range []string{"g", "h"} {
		if _, err := e.FireNow(e.ctx, g, "x"); err != nil {
			t.Fatal(err)
		}
	}
	e.dispatcher(nil)
	e.until("both are called", func() bool { return len(e.got("x")) == 2 })
	e.allOver()
	if _, _, err := e.Create(e.ctx, timers.Draft{Group: "none", ID: "x", URL: e.url, Due: due}); !errors.Is(err, timer.ErrNotFound) {
		t.Errorf("an unknown group: %v", err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.group("g", func(g *timer.Group) { g.Paused = true }) // or it might fall due before it is deleted
	e.dispatcher(nil)
	due := time.Now().Add(2 * time.Second)
	e.create(timers.Draft{ID: "gone", Due: due})
	if inFlight, err := e.Delete(e.ctx, "g", "gone", timers.Always); err != nil || inFlight {
		t.Fatal(inFlight, err)
	}
	if _, err := e.Delete(e.ctx, "g", "gone", timers.Always); !errors.Is(err, timer.ErrNotFound) {
		t.Errorf("the second time: %v", err)
	}
	e.create(timers.Draft{ID: "after", Due: due.Add(time.Second)})
	e.group("g", func(g *timer.Group) { g.Paused = false })
	e.state("after", timer.StateDone)
	if n := len(e.got("gone")); n != 0 {
		t.Errorf("a cancelled timer was called %d times", n)
	}
	h, err := e.History(e.ctx, "g", "gone")
	if err != nil || len(h) != 2 || h[0].Op != timer.Created || h[1].Op != timer.Cancelled {
		t.Errorf("history %+v, %v", h, err)
	}
}

func TestWhileFiring(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	e.answers(func(call) (int, string) {
		began <- struct{}{}
		<-goOn
		return 200, `{"ok":true}`
	})
	e.dispatcher(nil)
	e.create(timers.Draft{ID: "x", Due: time.Now()})
	<-began
	later := time.Now().Add(time.Hour)
	if _, err := e.Update(e.ctx, "g", "x", timers.Always, timers.Change{Due: &later}); !errors.Is(err, timer.ErrFiring) || !strings.Contains(err.Error(), "due at") {
		t.Errorf("an update: %v", err)
	}
	if inFlight, err := e.Delete(e.ctx, "g", "x", timers.Always); err != nil || !inFlight {
		t.Errorf("a delete: in flight %v, %v", inFlight, err)
	}
	close(goOn)
	e.state("x", timer.StateCancelled)
}

func TestRetriesAndPolicies(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var tries atomic.Int64
	e.answers(func(c call) (int, string) {
		switch c.ID {
		case "third":
			if tries.Add(1) < 3 {
				return 500, ""
			}
		case "never":
			return 503, ""
		case "final":
			return 404, ""
		case "later":
			if c.Revision == 1 {
				return 200, `{"ok":false,"nextExecuteAt":"` + time.Now().Add(300*time.Millisecond).Format(time.RFC3339Nano) + `"}`
			}
		}
		return 200, `{"ok":true}`
	})
	policy := &timer.Policy{Attempts: 3, Initial: 50 * time.Millisecond, MaxInterval: 100 * time.Millisecond}
	e.dispatcher(nil)
	for _, id := range []string{"third", "never", "final", "later"} {
		e.create(timers.Draft{ID: id, Due: time.Now(), Retry: policy})
	}
	if tm := e.state("third", timer.StateDone); tm.Attempt != 3 {
		t.Errorf("third: %+v", tm)
	}
	if tm := e.state("never", timer.StateFailed); tm.Attempt != 3 || tm.Status != 503 {
		t.Errorf("never: %+v", tm)
	}
	if tm := e.state("final", timer.StateFailed); tm.Attempt != 1 || tm.Status != 404 {
		t.Errorf("final: %+v", tm)
	}
	if tm := e.state("later", timer.StateDone); tm.Attempt != 1 || tm.Revision != 2 {
		t.Errorf("later: %+v", tm)
	}
	for i, c := range e.got("never") {
		if c.Attempt != int64(i+1) || c.key != c.Life+"-1-"+fmt.Sprint(i+1) {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	h, _ := e.History(e.ctx, "g", "never")
	var ops []string
	for _, r := range h {
		ops = append(ops, string(r.Op))
	}
	if got, want := strings.Join(ops, " "), "created firing retry firing retry firing failed"; got != want {
		t.Errorf("history: %s, want %s", got, want)
	}
	e.answers(nil)
	if _, err := e.Retry(e.ctx, "g", "never"); err != nil {
		t.Fatal(err)
	}
	if tm := e.state("never", timer.StateDone); tm.Revision != 2 || tm.Attempt != 1 {
		t.Errorf("retried by hand: %+v", tm)
	}
	if _, err := e.Retry(e.ctx, "g", "never"); !errors.Is(err, timer.ErrState) {
		t.Errorf("retry of a done timer: %v", err)
	}
}

func TestPauseLatenessAndBlockedAddress(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.group("g", func(g *timer.Group) { g.Paused = true })
	e.create(timers.Draft{ID: "x", Due: time.Now()})
	e.create(timers.Draft{ID: "late", Due: time.Now(), MaxLateness: time.Millisecond})
	e.group("h", func(*timer.Group) {})
	e.dispatcher(nil)
	e.create(timers.Draft{ID: "h", Group: "h", Due: time.Now().Add(300 * time.Millisecond)})
	e.create(timers.Draft{ID: "blocked", Group: "h", Due: time.Now(), URL: "http://169.254.169.254/latest", Retry: &timer.Policy{Attempts: 5}})
	e.until("the other group is called", func() bool { return len(e.got("h")) == 1 })
	if n := len(e.got("x")); n != 0 {
		t.Errorf("a timer of a paused group was called %d times", n)
	}
	e.group("g", func(g *timer.Group) { g.Paused = false })
	e.state("x", timer.StateDone)
	if tm := e.state("late", timer.StateFailed); tm.Error != timer.ErrTooLate || tm.Attempt != 0 {
		t.Errorf("late: %+v", tm)
	}
	e.until("the address is refused", func() bool {
		tm, err := e.Get(e.ctx, "h", "blocked")
		return err == nil && tm.State == timer.StateFailed && tm.Error == timer.ErrBlocked && tm.Attempt == 1
	})
}

// TestHangingServerDoesNotHoldUpOthers fills the places of a host that never answers.
func TestHangingServerDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ended := make(chan struct{})
	var hanging atomic.Int64
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		hanging.Add(1)
		<-ended
	}))
	defer evil.Close()
	defer close(ended)
	_, stop, _ := e.dispatcher(func(c *Config) { c.PerHost, c.Calls = 4, 20 })
	defer stop()
	began := time.Now()
	for i := range 40 {
		e.create(timers.Draft{ID: fmt.Sprintf("evil%d", i), Due: time.Now(), URL: evil.URL, Timeout: timer.MaxTimeout})
	}
	e.until("the evil server is full", func() bool { return hanging.Load() >= 4 })
	e.createAll(50, func(int) time.Time { return time.Now() })
	e.until("the others are called", func() bool { return e.called() == 50 })
	if n := hanging.Load(); n != 4 && time.Since(began) < timer.MaxTimeout { // none has ended until then
		t.Errorf("%d calls to the evil server at once", n)
	}
}
