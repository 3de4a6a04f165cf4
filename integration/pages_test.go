package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// Pages joined are one sorted list of what existed when the first was asked for,
// each event once, whatever the filter, the page size, the order and the range,
// and although events come, shards rotate and frames are stored meanwhile. What is
// newer than the first page comes ahead of it, so it is not among the others. A
// count of what existed says as many.
func TestPagesAreOneSortedList(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes, topic.Rotate = 2, schemas.Rotation{Rows: 60}
	e := running(t, topic)
	r := e.following()
	p := e.producer("app")

	// known is what was accepted, by message; the events of a month, and then those
	// that keep coming, each newer than all before.
	known := map[string]int64{}
	base := time.Date(2026, 10, 30, 0, 0, 0, 0, time.UTC)
	levels := []string{"info", "warn", "error"}
	n := 0
	say := func(at time.Time) {
		ev := producer.Event{Time: at, Level: levels[n%3], UserID: fmt.Sprintf("u-%d", n%7), Message: fmt.Sprint(n)}
		if err := p.Publish(t.Context(), ev); err != nil {
			t.Error(err)
		}
		n++
	}
	for i := range 400 {
		at := base.Add(time.Duration(i*7919%400) * 10 * time.Minute) // over a month's end, out of order
		if i%20 == 0 {
			at = base.Add(24 * time.Hour) // one instant, where only ids tell
		}
		known[fmt.Sprint(n)] = at.UnixNano()
		p.Log(producer.Event{Time: at, Level: levels[n%3], UserID: fmt.Sprintf("u-%d", n%7), Message: fmt.Sprint(n)})
		n++
	}
	e.flush(p)
	ctx, stop := context.WithCancel(t.Context())
	var coming sync.WaitGroup
	coming.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			say(base.Add(5*24*time.Hour + time.Duration(i)*time.Second))
			<-tick.C
		}
	})
	defer func() { stop(); coming.Wait() }()

	filters := map[string]func(i int) bool{
		"":                          func(int) bool { return true },
		"level = 'error'":           func(i int) bool { return i%3 == 2 },
		"user_id IN ('u-1', 'u-2')": func(i int) bool { return i%7 == 1 || i%7 == 2 },
		"NOT (level = 'info' OR user_id = 'u-3')": func(i int) bool { return i%3 != 0 && i%7 != 3 },
		"message matches '^1.*[05]$'":             func(i int) bool { s := fmt.Sprint(i); return s[0] == '1' && i%5 == 0 && i > 9 },
	}
	deadline := time.Now().Add(4 * time.Second) // as many as that allows
	rounds := 0
	rapid.Check(t, func(rt *rapid.T) {
		if rounds > 3 && time.Now().After(deadline) {
			return
		}
		rounds++
		where := rapid.SampledFrom(slices.Sorted(maps.Keys(filters))).Draw(rt, "where")
		req := query.Request{
			Topic: "app", Where: where, Limit: rapid.IntRange(25, 200).Draw(rt, "limit"),
			Ascending: rapid.Bool().Draw(rt, "asc"), To: base.Add(4 * 24 * time.Hour),
		}
		if rapid.Bool().Draw(rt, "range") {
			req.From = base.Add(time.Duration(rapid.IntRange(0, 2000).Draw(rt, "from")) * time.Minute)
			req.To = req.From.Add(time.Duration(rapid.IntRange(1, 2000).Draw(rt, "length")) * time.Minute)
		}
		want := map[string]bool{}
		for m, ts := range known {
			var i int
			_, _ = fmt.Sscan(m, &i)
			if filters[where](i) && ts >= max(req.From.UnixNano(), 0) && ts < req.To.UnixNano() {
				want[m] = true
			}
		}
		if !req.Ascending && req.From.IsZero() {
			req.To = time.Time{} // open: what comes, comes ahead
		}
		events, read, err := pages(t.Context(), r, req)
		if err != nil {
			rt.Fatalf("%+v: %v", req, err)
		}
		checkOrder(rt, events, req.Ascending)
		ahead := true
		for _, m := range column(events, "message") {
			switch {
			case want[m]:
				delete(want, m)
				ahead = false
			case !ahead || !req.To.IsZero():
				rt.Fatalf("%+v: event %s is none of those asked for", req, m)
			}
		}
		if len(want) > 0 {
			rt.Fatalf("%+v: %d events of %d on %d pages are missing: %v", req, len(want), len(events), len(read), want)
		}
		for _, page := range read {
			if len(page.Shards) > query.MaxPageShards && !strings.Contains(fmt.Sprint(page.Events), base.Add(24*time.Hour).Format("2006-01-02")) {
				rt.Logf("a page read %d shards", len(page.Shards))
			}
		}
		if !req.To.IsZero() {
			got, err := answered(func() (*query.Histogram, error) {
				return r.Histogram(t.Context(), query.HistogramRequest{Topic: "app", Where: where, From: req.From, To: req.To})
			})
			if err != nil || got.Count != uint64(len(events)) {
				rt.Fatalf("%+v: a count says %+v, the pages have %d (%v)", req, got, len(events), err)
			}
		}
	})
	stop()
	coming.Wait()
	t.Logf("%d rounds while %d events came", rounds, n-400)
}

func checkOrder(t rapid.TB, events []map[string]any, asc bool) {
	seen := map[any]bool{}
	last := ""
	for _, ev := range events {
		if seen[ev["id"]] {
			t.Fatalf("%v came twice", ev["id"])
		}
		seen[ev["id"]] = true
		ts := fmt.Sprint(ev["ts"])
		if last != "" && (asc && ts < last || !asc && ts > last) {
			t.Fatalf("%s after %s", ts, last)
		}
		last = ts
	}
}

// Exactly counted while the events are in EVENTS, in SHARDS and in ClickHouse, and
// while they pass from one to the next: never one too few or too many.
func TestCountIsExactOnTheWay(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes, topic.Rotate = 2, schemas.Rotation{Rows: 100}
	e := start(t, topic)
	r := e.following()
	p := e.producer("app")
	const total = 3000
	base := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := range total {
		p.Log(producer.Event{Time: base.Add(time.Duration(i) * time.Second), Level: []string{"info", "error"}[i%2], UserID: fmt.Sprint(i % 50), Message: "m"})
	}
	e.flush(p)
	counts := 0
	count := func(stored bool) {
		t.Helper()
		got, err := answered(func() (*query.Histogram, error) {
			return r.Histogram(t.Context(), query.HistogramRequest{Topic: "app", Where: "level = 'error'", Step: query.Step{Length: 10 * time.Minute}, By: "level", Notice: func(string) {}})
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.Count != total/2 || len(got.Buckets) != 5 || got.Buckets[2].By["error"] != 300 || (stored || got.Notice != "") && !strings.Contains(got.Notice, "Indexed are ts, user_id") {
			t.Fatalf("count %d: %+v", counts, got)
		}
		counts++
	}
	count(false)
	e.router()
	e.sink()
	eventually(t, 20*time.Second, func() error {
		count(false)
		if n := e.countOrNone("app"); n != total {
			return fmt.Errorf("%d rows are stored", n)
		}
		return nil
	})
	count(true)
	t.Logf("%d counts", counts)
	_, err := r.Histogram(t.Context(), query.HistogramRequest{Topic: "app", Step: query.Step{Length: time.Second}})
	if err == nil || !strings.Contains(err.Error(), "a step of 1m fits") {
		t.Errorf("3,000 buckets: %v", err)
	}
}

// countOrNone is the rows of a topic's table, 0 while there is none.
func (e *env) countOrNone(topic string) (n uint64) {
	_ = e.hand.Conn().QueryRow(e.t.Context(), "SELECT count() FROM "+e.table(topic)).Scan(&n)
	return n
}

// Five shards of which two overlap ten minutes: those two are read and named, and
// ClickHouse opens parts of no other. Pages to the end have every row once although
// 1,000 events a second come meanwhile.
func TestOverlapPruning(t *testing.T) {
	t.Parallel()
	e := running(t, oneLane("usage", 1000))
	p := e.producer("usage")
	base := time.Date(2026, 2, 10, 0, 0, 0, 0, time.UTC)
	for i := range 5000 { // a shard is 1,000 s long
		p.Log(producer.Event{Time: base.Add(time.Duration(i) * time.Second), Message: fmt.Sprint(i)})
		if i%1000 == 999 {
			e.flush(p)
		}
	}
	e.stored("usage", 5000, 30*time.Second)
	if shards := e.closed("usage", 20*time.Second); len(shards) != 5 && len(shards) != 6 {
		t.Fatalf("%d shards: %s", len(shards), describe(shards))
	}
	r := e.following()
	from := base.Add(1700 * time.Second)
	want := 0
	for _, s := range e.shards("usage") {
		if s.Overlaps(from.UnixNano(), from.Add(10*time.Minute).UnixNano()) {
			want++
		}
	}
	ten := query.Request{Topic: "usage", From: from, To: from.Add(10 * time.Minute), Limit: 500}
	page, err := answered(func() (*query.Page, error) { return r.Query(t.Context(), ten) })
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Events) != 500 || page.Cursor == "" || len(page.Shards) != 2 || want != 2 {
		t.Errorf("%d events, cursor %q, shards %v, of which %d overlap", len(page.Events), page.Cursor, page.Shards, want)
	}
	// ClickHouse says the same by EXPLAIN: it opens parts of these alone.
	parts := func() uint64 {
		return e.count("SELECT uniqExact(_part) FROM %s WHERE ts >= fromUnixTimestamp64Nano(%d, 'UTC') AND ts < fromUnixTimestamp64Nano(%d, 'UTC')",
			e.table("usage"), ten.From.UnixNano(), ten.To.UnixNano())
	}
	eventually(t, 10*time.Second, func() error {
		before := parts()
		plan, err := r.Explain(t.Context(), ten)
		if err != nil {
			return err
		}
		if after := parts(); after != before {
			return fmt.Errorf("parts were merged meanwhile, %d to %d", before, after)
		}
		if !slices.Equal(slices.Sorted(slices.Values(plan.Shards)), slices.Sorted(slices.Values(page.Shards))) || plan.Parts != before || plan.Rows > 2000 {
			t.Errorf("EXPLAIN has %d parts with %d rows of %v, the range lies in %d parts", plan.Parts, plan.Rows, plan.Shards, before)
		}
		return nil
	})

	// A page of one needs the newest of them alone, and the plan says no more than that.
	newest := ten
	newest.Limit = 1
	page, err = answered(func() (*query.Page, error) { return r.Query(t.Context(), newest) })
	if err != nil {
		t.Fatal(err)
	}
	if plan, err := answered(func() (query.Estimate, error) { return r.Explain(t.Context(), newest) }); err != nil || !slices.Equal(plan.Shards, page.Shards) || len(plan.Shards) != 1 || plan.Rows == 0 || plan.Rows > 1000 {
		t.Errorf("EXPLAIN of a page of one has %+v, it was read from %v (%v)", plan, page.Shards, err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var coming sync.WaitGroup
	came := 0
	coming.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			for range 10 {
				p.Log(producer.Event{Time: base.Add(6000*time.Second + time.Duration(came)*time.Millisecond), Message: "new"})
				came++
			}
			<-tick.C
		}
	})
	for range 3 {
		events, read, err := pages(t.Context(), r, query.Request{Topic: "usage", To: base.Add(5000 * time.Second), Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range column(events, "message") {
			seen[m] = true
		}
		if len(events) != 5000 || len(seen) != 5000 {
			t.Errorf("%d events on %d pages, %d of them different, want 5000", len(events), len(read), len(seen))
		}
	}
	stop()
	coming.Wait()
	t.Logf("%d events came meanwhile", came)
}

// Filters are algebra: 1,000 rows, env in {a,b,c}, host 0..9.
func TestFilterAlgebra(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app", schemas.Field{Name: "host", Type: schemas.TypeInt64}))
	p := e.producer("app")
	envs := []string{"a", "b", "c"}
	want, quoted := 0, 0
	for i := range 1000 {
		env, host := envs[i%3], i%10
		if env == "a" && host != 1 && host != 2 || env == "b" && host != 9 {
			want++
		}
		ev := producer.Event{Time: feb(i, 1000), Message: "m", Attrs: []producer.Attr{producer.String("env", env), producer.Int64("host", int64(host))}}
		if i%100 == 0 {
			ev.Message = "x'; DROP TABLE app; --"
			quoted++
		}
		p.Log(ev)
	}
	e.flush(p)
	r := e.following()
	check := func(stage string) {
		t.Helper()
		for where, want := range map[string]int{
			"(attributes.env = 'a' AND host NOT IN (1,2)) OR (attributes.env IN ('b') AND host != 9)":       want,
			"NOT ((attributes.env = 'a' AND host NOT IN (1,2)) OR (attributes.env IN ('b') AND host != 9))": 1000 - want,
			"message = 'x\\'; DROP TABLE app; --'":                                                          quoted,
			`message contains "'; DROP TABLE"`:                                                              quoted,
			"exists attributes.env":                                                                         1000,
			"exists attributes.host":                                                                        0, // promoted: it is in its column
			"host >= 3 AND host < 5":                                                                        200,
		} {
			got, err := answered(func() (*query.Histogram, error) {
				return r.Histogram(t.Context(), query.HistogramRequest{Topic: "app", Where: where})
			})
			if err != nil || got.Count != uint64(want) {
				t.Errorf("%s: %s: %+v, want %d (%v)", stage, where, got, want, err)
			}
		}
	}
	check("on the way")
	e.stored("app", 1000, 20*time.Second)
	check("stored")
	page, err := r.Query(t.Context(), query.Request{Topic: "app", Limit: 1, Fields: []string{"host", "attributes.env", "attributes.none"}})
	if err != nil || len(page.Events) != 1 {
		t.Fatal(err)
	}
	var masked map[string]json.RawMessage
	if err := json.Unmarshal(page.Events[0], &masked); err != nil || len(masked) != 2 || string(masked["attributes"]) != `{"env":"a"}` || string(masked["host"]) != "9" {
		t.Errorf("a masked event is %s (%v)", page.Events[0], err)
	}
}
