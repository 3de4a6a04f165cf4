package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
)

// 540 events of one second, most of them of instants that others share, three of one
// nanosecond and nothing alike but that: all are kept, and pages of 100 are 100 each, in
// one order, whichever way and from wherever they are read.
func TestSameInstant(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	e := start(t, topic)
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	e.router()
	p := e.producer("app")
	second := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	const n = 540
	for i := range n {
		ev := producer.Event{Time: second.Add(time.Duration(i%17) * time.Millisecond), UserID: fmt.Sprint("u-", i%50), Type: "log", Message: fmt.Sprint(i)}
		if i < 3 {
			ev.Time, ev.Type = second.Add(time.Second-1), []string{"client", "server", "exit"}[i]
		}
		p.Log(ev)
	}
	e.flush(p)
	e.routed("app", n)
	r := e.following()
	var newest []string
	read := func(stage string) {
		t.Helper()
		for _, asc := range []bool{false, true} {
			events, read, err := pages(t.Context(), r, query.Request{Topic: "app", From: second, To: second.Add(time.Second), Limit: 100, Ascending: asc})
			if err != nil {
				t.Fatal(err)
			}
			for i, page := range read {
				if want := min(100, n-100*i); len(page.Events) != want {
					t.Errorf("%s: page %d has %d events, want %d", stage, i+1, len(page.Events), want)
				}
			}
			ids := column(events, "id")
			if asc {
				slices.Reverse(ids)
			}
			if newest == nil {
				newest = ids
			}
			if !slices.Equal(ids, newest) {
				t.Errorf("%s, ascending %v: %d events in another order than at first", stage, asc, len(ids))
			}
		}
		last, _ := e.answer(r, query.Request{Topic: "app", From: second.Add(time.Second - 1), To: second.Add(time.Second)})
		types := column(last, "type")
		if slices.Sort(types); !slices.Equal(types, []string{"client", "exit", "server"}) {
			t.Errorf("%s: of the last nanosecond there are %v", stage, types)
		}
	}
	read("fresh")
	if all := slices.Compact(slices.Sorted(slices.Values(newest))); len(all) != n {
		t.Errorf("%d different events, want %d", len(all), n)
	}
	e.sink()
	e.stored("app", n, 20*time.Second)
	read("stored")
	e.verify(n)
}
