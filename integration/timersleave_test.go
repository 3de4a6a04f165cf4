package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/cleaner"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// is waits until a timer is in a state.
func (e *timersEnv) is(id string, want timer.State) (tm timers.Timer) {
	e.t.Helper()
	eventually(e.t, time.Minute, func() (err error) {
		if tm, err = e.Get(e.t.Context(), "g", id); err == nil && tm.State != want {
			err = fmt.Errorf("%s is %s, expected %s", id, tm.State, want)
		}
		return err
	})
	return tm
}

// soon is a time when a timer may be due at once: what is due before the server's time, which may take a while to be asked for, is refused.
func soon(due time.Time) time.Time {
	if at := time.Now().Add(3 * time.Second); due.Before(at) {
		return at
	}
	return due
}

// createSoon creates a timer that is due soon at the earliest, and later where the server was slower than that.
func (e *timersEnv) createSoon(d timers.Draft) (tm timers.Timer, created bool, err error) {
	for due := d.Due; ; {
		d.Due = soon(due)
		var refused *timer.Refusal
		if tm, created, err = e.Create(e.t.Context(), d); !errors.As(err, &refused) || refused.Code != timer.CodeDuePast {
			return tm, created, err
		}
	}
}

// create creates a timer with a payload that names it.
func (e *timersEnv) create(id string, due time.Time) timers.Timer {
	e.t.Helper()
	tm, created, err := e.createSoon(timers.Draft{Group: "g", ID: id, Due: due, URL: e.url, Payload: fmt.Appendf(nil, `{"of":%q}`, id)})
	if err != nil || !created {
		e.t.Fatalf("%s: created %v, %v", id, created, err)
	}
	return tm
}

// fails has the timers that are named so fail for good; the others succeed.
func (e *timersEnv) fails(ids ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = func(c timerCall) int {
		for _, id := range ids {
			if c.ID == id {
				return 404
			}
		}
		return 200
	}
}

// kept are the ids that have records in TIMERS.
func (e *timersEnv) kept() map[string]bool {
	e.t.Helper()
	subjects, err := streams.Subjects(e.t.Context(), e.reg.JetStream(), schemas.StreamTimers, schemas.TimerTopicFilter(schemas.DefaultTimerTopic))
	if err != nil {
		e.t.Fatal(err)
	}
	ids := map[string]bool{}
	for s := range subjects {
		key, err := schemas.ParseTimerSubject(s)
		if err != nil {
			e.t.Fatal(err)
		}
		ids[key.ID] = true
	}
	return ids
}

// Timers that are over leave TIMERS once their rows were read back, with all their records. Get and History
// say the same before and after, their ids begin again, and a failed one can still be retried.
func TestTimersLeave(t *testing.T) {
	t.Parallel()
	began := time.Now() // nothing has settled by then, however long what comes next takes
	e := start(t).timers()
	races, others := "races", 0 // in the lane that is walked first
	for ; e.create(races, time.Now().Add(time.Hour)).Slot%4 != 0; others++ {
		races += "x"
	}
	e.fails("fails", races)
	e.dispatcher()
	if _, err := e.FireNow(t.Context(), "g", races); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"done", "fails"} {
		e.create(id, time.Now())
	}
	e.create("gone", time.Now().Add(time.Hour))
	waits := e.create("waits", time.Now().Add(time.Hour))
	if _, err := e.Delete(t.Context(), "g", "gone", timers.Always); err != nil {
		t.Fatal(err)
	}
	done := e.is("done", timer.StateDone)
	e.is("fails", timer.StateFailed)
	e.is(races, timer.StateFailed)
	if d := e.clean(e.cleaner(), cold); d != (cleaner.Done{}) {
		t.Errorf("before anything is routed: %+v", d)
	}
	e.router()
	if d := e.clean(e.cleaner(), cold); d != (cleaner.Done{}) {
		t.Errorf("before anything is stored: %+v", d)
	}
	e.sink()
	e.stored(schemas.DefaultTimerTopic, uint64(5+1+2*3+1+others), time.Minute)
	if d := e.clean(e.cleaner(), time.Until(began)); d != (cleaner.Done{}) {
		t.Errorf("before the settle time: %+v", d)
	}
	// At the moment between what the cleaner saw and its purge, a failed timer is retried.
	raced := false
	d := e.clean(e.cleaner(func(c *cleaner.Config) {
		c.Crash = func(point string) {
			if point != "cleaner.before-purges" || raced {
				return
			}
			raced = true
			e.fails()
			if tm, err := e.Retry(t.Context(), "g", races); err != nil || tm.Revision != 3 {
				t.Errorf("a retry while it leaves: %+v, %v", tm, err)
			}
		}
	}), cold)
	if d.Purged != 4 || d.Held != 0 || !raced {
		t.Errorf("%+v, expected four purges", d)
	}
	if kept := e.kept(); len(kept) != 2+others || !kept["waits"] || !kept[races] {
		t.Errorf("%v are in TIMERS, expected races and waits", kept)
	}
	if tm := e.is(races, timer.StateDone); tm.Revision != 3 || string(tm.Payload) != fmt.Sprintf(`{"of":%q}`, races) {
		t.Errorf("retried while it left: %+v", tm)
	}
	if tm := e.is("done", timer.StateDone); tm.Life != done.Life || tm.URL != e.url || tm.CreatedAt.IsZero() || tm.Status != 200 {
		t.Errorf("after it left: %+v", tm)
	}
	if h, err := e.History(t.Context(), "g", "gone"); err != nil || len(h) != 2 || h[1].Op != timer.Cancelled {
		t.Errorf("the history of gone: %+v, %v", h, err)
	}
	if again := e.create("done", time.Now()); again.Life == done.Life || again.Revision != 1 {
		t.Errorf("its id begins again as %+v", again)
	}
	if tm, err := e.Retry(t.Context(), "g", "fails"); err != nil || tm.Revision != 2 {
		t.Errorf("a retry of what left: %+v, %v", tm, err)
	}
	e.is("done", timer.StateDone)
	if tm := e.is("fails", timer.StateDone); tm.Revision != 2 {
		t.Errorf("retried: %+v", tm)
	}
	e.mu.Lock()
	for id, calls := range e.calls {
		for _, c := range calls {
			if string(c.Payload) != fmt.Sprintf(`{"of":%q}`, id) {
				t.Errorf("%s was called with %s", id, c.Payload)
			}
		}
	}
	e.mu.Unlock()
	past := done.Due.Add(-time.Minute)
	if tm, err := e.Update(t.Context(), "g", "waits", timers.IfRevision(waits.Revision), timers.Change{Due: &past}); err == nil {
		t.Errorf("a due time that is past: %+v", tm)
	}
	e.verified(schemas.DefaultTimerTopic)
}
