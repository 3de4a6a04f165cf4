package integration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
)

// Two producers send 3,000 events of one time, and more while pages of 11 to 1,000 are read; sinks begin and end between two
// pages: each page goes on where the one before ended, every event that was there is read once, in the order of ids as their text has it, and of
// each producer in the order it sent.
func TestPagesOfOneTimeOfTwoProducers(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	e.router()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	producers := []*producer.Producer{e.producer("app"), e.producer("app")}
	next := [2]int{}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	send := func(n int) {
		t.Helper()
		for range n {
			which := rnd.IntN(2)
			ev := producer.Event{Time: at, Service: fmt.Sprint("p-", which), UserID: fmt.Sprint("u-", rnd.IntN(9)), Message: fmt.Sprintf("%06d", next[which])}
			if err := producers[which].Submit(t.Context(), ev, nil); err != nil {
				t.Fatal(err)
			}
			next[which]++
		}
		for _, p := range producers {
			e.flush(p)
		}
	}
	send(3000)
	stop := func() {}
	walk := func(ascending bool, limit func(page int) int, between func(page int)) {
		t.Helper()
		what := fmt.Sprintf("ascending %v", ascending)
		before := next
		var events []told
		var lines []json.RawMessage
		r, q := e.reader(), query.Request{Topic: "app", Ascending: ascending}
		for page := 0; ; page++ {
			q.Limit = limit(page)
			got, err := answered(func() (*query.Page, error) { return r.Query(t.Context(), q) })
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, got.Events...)
			if q.Cursor = got.Cursor; q.Cursor == "" {
				break
			}
			between(page)
		}
		events = parsed(t, texts(lines))
		if !ascending {
			slices.Reverse(events)
			slices.Reverse(lines)
		}
		for i := range events[1:] {
			if events[i].ID >= events[i+1].ID { // the same one twice, too
				t.Fatalf("%s: event %d has the id %s, the next one %s", what, i, events[i].ID, events[i+1].ID)
			}
		}
		last, known := [2]string{}, [2]int{}
		for _, line := range lines {
			var ev struct{ Service, Message string }
			if err := json.Unmarshal(line, &ev); err != nil {
				t.Fatal(err)
			}
			which := int(ev.Service[len(ev.Service)-1] - '0')
			if ev.Message <= last[which] {
				t.Fatalf("%s: of %s event %s comes behind %s", what, ev.Service, ev.Message, last[which])
			}
			if last[which] = ev.Message; ev.Message < fmt.Sprintf("%06d", before[which]) {
				known[which]++
			}
		}
		if known != before {
			t.Errorf("%s: %v of the %v events that were there", what, known, before)
		}
	}
	idle := func(int) {}
	whole := func(int) int { return 1000 }
	// From 11 to 1,000, and smaller ones as often as larger ones.
	mixed := func(page int) int {
		return []int{11, 12 + rnd.IntN(20), 32 + rnd.IntN(100), 100 + rnd.IntN(400), 1000}[page%5]
	}
	walk(true, whole, idle) // on their way
	for _, ascending := range []bool{true, false} {
		walk(ascending, mixed, func(page int) {
			send(5)
			if page%2 == 0 {
				stop = e.sink()
			} else {
				stop()
			}
		})
		stop()
	}
	e.sink()
	e.stored("app", uint64(next[0]+next[1]), 30*time.Second)
	for _, ascending := range []bool{true, false} {
		walk(ascending, mixed, idle)
	}
}
