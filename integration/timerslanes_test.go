package integration

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// However many lanes a topic of timers has (other tests have 4), histories, lists and erasures are exact; and a history is looked for in the lane
// of its id alone: a row under another lane's shards, which no router put there, is not read.
func TestTimersAreInTheirLane(t *testing.T) {
	t.Parallel()
	for _, lanes := range []int{1, 16} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			t.Parallel()
			topic := schemas.NewTopicOf(kinds.Timer, schemas.DefaultTimerTopic)
			topic.Lanes = lanes
			e := running(t, topic).timers()
			const n = 8
			due := time.Now().Add(time.Hour)
			ids := named("t", n)
			user := func(i int) string { return fmt.Sprint("u-", i%4) }
			changes := func(i int) int { return i % 3 }
			rows := uint64(0)
			for i, id := range ids {
				_, _, err := e.Create(t.Context(), timers.Draft{Group: "g", ID: id, Due: due, URL: e.url, User: user(i)})
				for c := range changes(i) {
					later := due.Add(time.Duration(n*c+i) * time.Second)
					if err == nil {
						_, err = e.Update(t.Context(), "g", id, timers.Always, timers.Change{Due: &later})
					}
				}
				if i%5 == 0 && err == nil {
					_, err = e.Delete(t.Context(), "g", id, timers.Always)
					rows++
				}
				if err != nil {
					t.Fatal(id, err)
				}
				rows += uint64(1 + changes(i))
			}
			e.stored(topic.Name, rows, time.Minute)
			e.whole(topic.Name, rows)
			exact := func(when, erased string) {
				t.Helper()
				var pending []string
				for i, id := range ids {
					want := []timer.Op{timer.Created}
					for range changes(i) {
						want = append(want, timer.Updated)
					}
					if i%5 == 0 {
						want = append(want, timer.Cancelled)
					} else if user(i) != erased {
						pending = append(pending, id)
					}
					history, err := e.History(t.Context(), "g", id)
					if user(i) == erased {
						if slices.ContainsFunc(history, func(tm timers.Timer) bool { return tm.Op != timer.Cancelled || tm.User != "" }) {
							t.Errorf("%s: %s of the erased user has %+v (%v)", when, id, history, err)
						}
						continue
					}
					var got []timer.Op
					for _, tm := range history {
						got = append(got, tm.Op)
					}
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("%s: the history of %s is %v (%v), want %v", when, id, got, err, want)
					}
				}
				page, err := e.List(t.Context(), "g", timers.Filter{State: timer.StatePending})
				var listed []string
				for _, tm := range page.Timers {
					listed = append(listed, tm.ID)
				}
				slices.Sort(listed)
				slices.Sort(pending)
				if err != nil || !slices.Equal(listed, pending) {
					t.Errorf("%s: %v are listed (%v), want %v", when, listed, err, pending)
				}
			}
			exact("stored", "")
			e.erase(erasure.Request{Topic: topic.Name, Users: []string{"u-3"}})
			if left := e.count("SELECT countIf(user_id = 'u-3') FROM %s", e.table(topic.Name)); left != 0 {
				t.Errorf("%d rows of the user are left", left)
			}
			exact("erased", "u-3")
			e.verified(topic.Name)
			if lanes > 1 { // another transition of t-1, in another lane
				other := schemas.NewShard((e.keyOf("g", "t-1").Lane + 1) % lanes)
				e.exec("INSERT INTO %s SELECT * REPLACE(toUInt64(%d) AS shard, toInt64(999999) AS seq) FROM %[1]s WHERE timer_id = 't-1' LIMIT 1", e.table(topic.Name), uint64(other))
				exact("with a row in another lane", "u-3")
				e.hiddenInItsLane("t-1", "t-2", other)
			}
		})
	}
}

// hiddenInItsLane has an erasure under way mean rows of two timers, of which only the second's is in the lane of its timer: that one is hidden.
func (e *timersEnv) hiddenInItsLane(shown, hidden string, other schemas.Shard) {
	e.t.Helper()
	const topic = schemas.DefaultTimerTopic
	e.exec("INSERT INTO %s SELECT * REPLACE(toUInt64(%d) AS shard, toInt64(999998) AS seq, 'u-9' AS user_id) FROM %[1]s WHERE timer_id = '%[3]s' LIMIT 1", e.table(topic), uint64(other), shown)
	e.exec("INSERT INTO %s SELECT * REPLACE(toInt64(999997) AS seq, 'u-9' AS user_id) FROM %[1]s WHERE timer_id = '%[2]s' LIMIT 1", e.table(topic), hidden)
	if _, err := e.reg.Enter(e.t.Context(), ledger.Erasure{
		Topic: topic, ID: "e-9", From: 0, To: time.Now().Add(time.Hour).UnixNano(), Schema: 1, Fence: 1, Front: schemas.StreamTimers, State: ledger.Waiting,
		Users: []string{"u-9"}, Cond: "user_id = {p1:String}", Params: map[string]string{"p1": "u-9"},
	}); err != nil {
		e.t.Fatal(err)
	}
	eventually(e.t, time.Minute, func() error { // what is known of the ledger may be a second old
		page, err := e.List(e.t.Context(), "g", timers.Filter{})
		if err == nil && slices.ContainsFunc(page.Timers, func(tm timers.Timer) bool { return tm.ID == hidden }) {
			err = fmt.Errorf("%s is listed", hidden)
		}
		if err == nil && !slices.ContainsFunc(page.Timers, func(tm timers.Timer) bool { return tm.ID == shown }) {
			e.t.Fatalf("%s is hidden by a row that is not in its lane", shown)
		}
		return err
	})
	for id, gone := range map[string]bool{shown: false, hidden: true} {
		if _, err := e.Get(e.t.Context(), "g", id); errors.Is(err, timer.ErrNotFound) != gone || !gone && err != nil {
			e.t.Errorf("get of %s: %v", id, err)
		}
	}
}
