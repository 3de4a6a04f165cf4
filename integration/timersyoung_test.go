package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// TIMERS loses its end, and a process that had it open before creates timers while repair is at work: after it
// planned, and before TIMERS goes on above what was routed. Routers go on then. The young timers are put again, by this
// repair, or by the next one when this one is killed before it looked for them.
func TestRepairWhileTimersAreWritten(t *testing.T) {
	t.Parallel()
	for name, killedAt := range map[string]string{"to its end": "", "killed": "front marked"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, e := timersOnDisk(t)
			const many, late = 24, 3
			due := time.Now().Add(time.Hour)
			for _, id := range named("waits", many) {
				e.create(id, due)
			}
			e.stored(schemas.DefaultTimerTopic, many, time.Minute)
			before := d.stream(schemas.StreamTimers).LastSeq
			d.cut(schemas.StreamTimers)

			create := func(id string) {
				eventually(t, time.Minute, func() error {
					_, _, err := e.Create(t.Context(), timers.Draft{Group: "g", ID: id, Due: due, URL: e.url, Payload: fmt.Appendf(nil, `{"of":%q}`, id)})
					return err
				})
			}
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			r, err := repair.New(ctx, repair.Config{NC: e.connect(), Registry: e.reg, DB: e.db, Check: router.FramesOf(nil), MaxWait: time.Nanosecond, Crash: func(point string) {
				switch point {
				case "before " + string(repair.AdvanceFront):
					for _, id := range named("late", late) {
						create(id)
					}
					if last := d.stream(schemas.StreamTimers).LastSeq; last >= before {
						t.Errorf("the late timers end at message %d, expected below %d", last, before)
					}
				case killedAt:
					kill()
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := r.Plan(ctx, "")
			if err != nil || !does(plan, repair.AdvanceFront) {
				t.Fatalf("%+v, %v", plan, err)
			}
			if err := r.Apply(ctx, plan, func(*repair.Action, error) {}); (err != nil) != (killedAt != "") {
				t.Fatal(err)
			}
			for lane := range 4 { // each router goes on
				create(e.inLane(lane))
			}
			eventually(t, time.Minute, func() error {
				if n := e.count("SELECT uniqExact(timer_id) FROM %s WHERE startsWith(timer_id, 'after-')", e.table(schemas.DefaultTimerTopic)); n < 4 {
					return fmt.Errorf("%d of 4 timers are stored that were created above", n)
				}
				return nil
			})
			e.repaired()
			for _, id := range append(named("waits", many), named("late", late)...) {
				if tm := e.is(id, timer.StatePending); !tm.Due.Equal(due.Truncate(time.Nanosecond)) || string(tm.Payload) != fmt.Sprintf(`{"of":%q}`, id) {
					t.Errorf("%s came back as %+v", id, tm)
				}
			}
			eventually(t, time.Minute, func() error {
				if rep := e.fronts(schemas.DefaultTimerTopic); !rep.OK() || rep.Topics[0].Front.Waiting > 0 {
					return fmt.Errorf("%+v %q", rep.Topics[0].Front, rep.Problems)
				}
				return nil
			})
		})
	}
}

// inLane is an id of a timer whose lane is the one given.
func (e *timersEnv) inLane(lane int) string {
	e.t.Helper()
	for i := 0; ; i++ {
		id := fmt.Sprint("after-", i)
		if e.keyOf("g", id).Lane == lane {
			return id
		}
	}
}
