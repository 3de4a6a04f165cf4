package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// Pages forth and back of one topic and of several show the same events in the same order, while they are on their
// way, routed and stored, and a count by a page's cursors says how many are ahead of it and after it. What comes
// meanwhile is counted as newer, and is on the page before the first.
func TestPagesForthAndBack(t *testing.T) {
	t.Parallel()
	app, web := newTopic("app"), newTopic("web")
	app.Lanes, web.Lanes = 2, 1
	app.Rotate, web.Rotate = schemas.Rotation{Rows: 60}, schemas.Rotation{Rows: 40}
	e := start(t, app, web)
	r := e.following()
	base := time.Date(2026, 10, 30, 0, 0, 0, 0, time.UTC)
	producers := map[string]*producer.Producer{"app": e.producer("app"), "web": e.producer("web")}
	n := 0
	say := func(topic string, at time.Time) {
		producers[topic].Log(producer.Event{Time: at, Level: []string{"info", "error"}[n%2], Message: fmt.Sprint(n)})
		n++
	}
	for i := range 300 {
		topic := []string{"app", "app", "web"}[i%3]
		at := base.Add(time.Duration(i*7919%300) * 10 * time.Minute) // over a month's end, out of order
		if i%20 == 0 {
			at = base.Add(24 * time.Hour) // one instant, where only ids tell
		}
		say(topic, at)
	}
	for _, p := range producers {
		e.flush(p)
	}
	walks := 0
	check := func() {
		t.Helper()
		most := walks + 15
		rapid.Check(t, func(rt *rapid.T) {
			if walks == most {
				return
			}
			walks++
			req := query.SearchRequest{Ascending: rapid.Bool().Draw(rt, "asc"), Where: rapid.SampledFrom([]string{"", "level = 'error'"}).Draw(rt, "where")}
			req.Topics = rapid.SampledFrom([][]string{{"app"}, {"web"}, {"app", "web"}}).Draw(rt, "topics")
			if rapid.Bool().Draw(rt, "range") {
				req.From = base.Add(time.Duration(rapid.IntRange(0, 2000).Draw(rt, "from")) * time.Minute)
				req.To = req.From.Add(time.Duration(rapid.IntRange(1, 2000).Draw(rt, "length")) * time.Minute)
			}
			forthAndBack(rt, r, req)
		})
	}
	check()
	e.router()
	e.sink()
	check()
	e.stored("app", 200, 20*time.Second)
	e.stored("web", 100, 20*time.Second)
	check()

	req := query.SearchRequest{Topics: []string{"app", "web"}, Limit: 10}
	page, err := r.Search(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	newer := query.SearchRequest{Topics: req.Topics, Cursor: page.Back}
	for range 3 {
		before, err := r.SearchCount(t.Context(), newer)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			say(req.Topics[i%2], base.Add(time.Duration(3000+n)*time.Hour/60))
		}
		for _, p := range producers {
			e.flush(p)
		}
		got, err := r.SearchCount(t.Context(), newer)
		if err != nil || got.Count != before.Count+6 || got.Topics[1].Count != before.Topics[1].Count+3 {
			t.Fatalf("%+v are newer after %+v and six more (%v)", got, before, err)
		}
	}
	ahead, err := r.Search(t.Context(), newer)
	if err != nil || len(ahead.Events) != 18 {
		t.Fatalf("the page before the first has %d events (%v)", len(ahead.Events), err)
	}
	newer.Cursor = ahead.Back
	if again, err := r.Search(t.Context(), newer); err != nil || len(again.Events) != 0 || again.Back == "" {
		t.Errorf("nothing is newer than that, and the page has %+v (%v)", again, err)
	}
	t.Logf("%d walks", walks)
}

// forthAndBack walks over the pages of a request.
func forthAndBack(rt *rapid.T, r *query.Reader, req query.SearchRequest) {
	read := func(cursor string, limit int) (texts []string, forward, back string) {
		req := req
		req.Cursor, req.Limit = cursor, limit
		if cursor != "" {
			req.From, req.To = time.Time{}, time.Time{}
		}
		if len(req.Topics) == 1 && rapid.Bool().Draw(rt, "as one") {
			page, err := answered(func() (*query.Page, error) {
				return r.Query(rt.Context(), query.Request{Topic: req.Topics[0], From: req.From, To: req.To, Where: req.Where, Limit: limit, Ascending: req.Ascending, Cursor: cursor})
			})
			if err != nil {
				rt.Fatal(err)
			}
			for _, ev := range page.Events {
				texts = append(texts, req.Topics[0]+" "+nameOfEvent(rt, ev))
			}
			return texts, page.Cursor, page.Back
		}
		page, err := answered(func() (*query.SearchPage, error) { return r.Search(rt.Context(), req) })
		if err != nil {
			rt.Fatal(err)
		}
		for _, ev := range page.Events {
			texts = append(texts, ev.Topic+" "+nameOfEvent(rt, ev.Event))
		}
		return texts, page.Cursor, page.Back
	}
	var all []string
	for cursor := ""; ; {
		texts, forward, _ := read(cursor, 100)
		all = append(all, texts...)
		if cursor = forward; cursor == "" {
			break
		}
	}
	begin, end, forward, back := 0, 0, "", ""
	for step := range 6 {
		cursor, goesBack := forward, back != "" && rapid.Bool().Draw(rt, "back")
		switch {
		case goesBack:
			cursor = back
		case step > 0 && forward == "":
			if end != len(all) {
				rt.Fatalf("%+v: the last page ends with event %d of %d", req, end, len(all))
			}
			continue
		}
		var texts []string
		texts, forward, back = read(cursor, rapid.IntRange(1, 90).Draw(rt, "limit"))
		if goesBack {
			begin, end = begin-len(texts), begin
		} else {
			begin, end = end, end+len(texts)
		}
		if begin < 0 || end > len(all) || !slices.Equal(texts, all[begin:end]) {
			rt.Fatalf("%+v: step %d, back %v, from %d to %d of %d:\n%q", req, step, goesBack, begin, end, len(all), texts)
		}
	}
	for cursor, want := range map[string]int{back: begin, forward: len(all) - end} {
		if cursor == "" {
			continue
		}
		got, err := answered(func() (*query.SearchCount, error) {
			return r.SearchCount(rt.Context(), query.SearchRequest{Topics: req.Topics, Where: req.Where, Cursor: cursor})
		})
		if err != nil || got.Count != uint64(want) {
			rt.Fatalf("%+v: a count by a cursor says %+v, want %d (%v)", req, got, want, err)
		}
	}
}

// nameOfEvent tells an event from others.
func nameOfEvent(rt *rapid.T, text json.RawMessage) string {
	var ev struct{ ID, Message string }
	if err := json.Unmarshal(text, &ev); err != nil {
		rt.Fatal(err)
	}
	return ev.ID + " " + ev.Message
}
