package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// A user's timers are erased: those that are pending are cancelled and never called, no spec and no row
// of the user is left, in TIMERS and in ClickHouse, and the timers of others are called.
func TestEraseTimers(t *testing.T) {
	t.Parallel()
	e := running(t).timers()
	e.dispatcher()
	due := time.Now().Add(time.Hour)
	create := func(id, user string, due time.Time) {
		t.Helper()
		if _, _, err := e.createSoon(timers.Draft{Group: "g", ID: id, Due: due, URL: e.url, User: user, Payload: []byte(`"secret of ` + user + `"`)}); err != nil {
			t.Fatal(err)
		}
	}
	create("mine-done", "u-7", time.Now())
	create("mine-pending", "u-7", due)
	create("mine-again", "u-7", time.Now())
	create("other-pending", "u-1", due)
	e.is("mine-done", timer.StateDone)
	e.is("mine-again", timer.StateDone)
	create("mine-again", "u-1", due) // a life of another user, in the place of the first
	const stored = 4 + 2*2 + 1
	e.stored(schemas.DefaultTimerTopic, stored, time.Minute)
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: schemas.DefaultTimerTopic, Users: []string{"u-7"}})
	if err != nil {
		t.Fatal(err)
	}
	done, err := x.Run(t.Context(), job.Topic, job.ID)
	if err != nil {
		t.Fatal(err)
	}
	if done.Rows != 3+1+3 {
		t.Errorf("%d rows were erased, expected 7", done.Rows)
	}
	_, err = streams.Headers(t.Context(), e.reg.JetStream(), schemas.StreamTimers, schemas.TimerTopicFilter(schemas.DefaultTimerTopic), 1, func(m *streams.Message) error {
		whole, err := streams.DecideAt(t.Context(), e.reg.JetStream(), schemas.StreamTimers, m.Sequence)
		if err != nil {
			return err
		}
		if strings.Contains(string(whole.Data), "u-7") || whole.Header.Get(schemas.HeaderUser) == "u-7" {
			t.Errorf("message %d on %s is of the user: %v %s", m.Sequence, m.Subject, whole.Header, whole.Data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e.is("mine-pending", timer.StateCancelled)
	for _, id := range []string{"other-pending", "mine-again"} {
		if tm := e.is(id, timer.StatePending); string(tm.Payload) != `"secret of u-1"` {
			t.Errorf("%s: %+v", id, tm)
		}
		if _, err := e.FireNow(t.Context(), "g", id); err != nil {
			t.Error(err)
		}
		e.is(id, timer.StateDone)
	}
	if _, err := e.FireNow(t.Context(), "g", "mine-pending"); !errors.Is(err, timer.ErrNotFound) {
		t.Errorf("an erased timer is made due: %v", err)
	}
	// What is left: two timers of another with created, updated, firing and done, and the cancellation.
	e.stored(schemas.DefaultTimerTopic, 2*4+1, time.Minute)
	if n := e.count("SELECT count() FROM %s WHERE user_id = 'u-7' OR spec LIKE '%%u-7%%'", e.table(schemas.DefaultTimerTopic)); n != 0 {
		t.Errorf("%d rows of the user are left", n)
	}
	p, err := x.Show(t.Context(), job.Topic, job.ID)
	if err != nil || !p.Certified {
		t.Errorf("the proof: %+v, %v", p, err)
	}
	if len(e.calls["mine-pending"]) != 0 {
		t.Error("an erased timer was called")
	}
	e.verified(schemas.DefaultTimerTopic)
}

// An erasure hides the timers that it means as soon as it is entered, by their user or by a filter, before it has
// reached TIMERS: from get, list, history and every change. Others are shown.
func TestErasureHidesTimers(t *testing.T) {
	t.Parallel()
	e := running(t).timers()
	const topic = schemas.DefaultTimerTopic
	due := time.Now().Add(time.Hour)
	for id, user := range map[string]string{"of-user": "u-7", "of-filter": "u-1", "other": "u-1"} {
		if _, _, err := e.createSoon(timers.Draft{Group: "g", ID: id, Due: due, URL: e.url, User: user}); err != nil {
			t.Fatal(err)
		}
	}
	e.stored(topic, 3, time.Minute)
	fence, err := streams.LastSeq(t.Context(), e.reg.JetStream(), schemas.StreamTimers)
	if err != nil {
		t.Fatal(err)
	}
	entry := ledger.Erasure{Topic: topic, From: 0, To: time.Now().Add(time.Hour).UnixNano(), Schema: 1, Fence: fence, Front: schemas.StreamTimers, State: ledger.Waiting}
	byUser, byFilter := entry, entry
	byUser.ID, byUser.Users, byUser.Cond, byUser.Params = "e-1", []string{"u-7"}, "user_id = {p1:String}", map[string]string{"p1": "u-7"}
	byFilter.ID, byFilter.Where, byFilter.Cond, byFilter.Params = "e-2", "timer_id = 'of-filter'", "timer_id = {p1:String}", map[string]string{"p1": "of-filter"}
	for _, one := range []ledger.Erasure{byUser, byFilter} {
		if _, err := e.reg.Enter(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"of-user", "of-filter"} {
		eventually(t, time.Minute, func() error { // what is known of the ledger may be a second old
			if tm, err := e.Get(t.Context(), "g", id); !errors.Is(err, timer.ErrNotFound) {
				return fmt.Errorf("%s is shown: %+v, %w", id, tm, err)
			}
			return nil
		})
		if h, err := e.History(t.Context(), "g", id); !errors.Is(err, timer.ErrNotFound) {
			t.Errorf("the history of %s: %+v, %v", id, h, err)
		}
		if _, err := e.FireNow(t.Context(), "g", id); !errors.Is(err, timer.ErrNotFound) {
			t.Errorf("%s is made due: %v", id, err)
		}
	}
	page, err := e.List(t.Context(), "g", timers.Filter{Limit: 2})
	if err != nil || len(page.Timers) != 1 || page.Timers[0].ID != "other" || page.Cursor != "" {
		t.Errorf("listed: %+v, %v", page, err)
	}
	if h, err := e.History(t.Context(), "g", "other"); err != nil || len(h) != 1 {
		t.Errorf("the history of another: %+v, %v", h, err)
	}
}
