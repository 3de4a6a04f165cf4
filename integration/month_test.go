package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// answer is the events of a request, all pages of it, with the shards they were
// read from.
func (e *env) answer(r *query.Reader, req query.Request) (events []map[string]any, shards []string) {
	e.t.Helper()
	events, read, err := pages(e.t.Context(), r, req)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, page := range read {
		shards = append(shards, page.Shards...)
	}
	return events, shards
}

// pages reads a request's pages to the last.
func pages(ctx context.Context, r *query.Reader, req query.Request) (events []map[string]any, read []*query.Page, err error) {
	for {
		page, err := answered(func() (*query.Page, error) { return r.Query(ctx, req) })
		if err != nil {
			return nil, nil, err
		}
		for _, raw := range page.Events {
			var ev map[string]any
			if err := json.Unmarshal(raw, &ev); err != nil {
				return nil, nil, err
			}
			events = append(events, ev)
		}
		read = append(read, page)
		if req.Cursor = page.Cursor; req.Cursor == "" {
			return events, read, nil
		}
	}
}

func column(events []map[string]any, name string) []string {
	out := make([]string, len(events))
	for i, ev := range events {
		out[i] = fmt.Sprint(ev[name])
	}
	return out
}

// The month is the UTC month of the event's own time, whatever zone it was
// written in, by the library and as bare JSON alike.
func TestMonthBoundary(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"library", "json"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			e := start(t, oneLane("app", 0))
			e.router()
			p := e.producer("app")
			lastOfJan := "2026-01-31T23:59:59.999Z"
			for _, ev := range []struct{ month, at, message string }{
				{"2026-01", lastOfJan, "last of January"},
				{"2026-02", "2026-02-01T00:00:00.000Z", "first of February"},
				{"2026-02", "2026-01-31T19:00:00-05:00", "first of February, in New York"},
			} {
				if way == "json" {
					e.publish("events.app."+ev.month+".0", fmt.Sprintf(`{"ts":%q,"message":%q}`, ev.at, ev.message))
					continue
				}
				at, err := time.Parse(time.RFC3339, ev.at)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Publish(t.Context(), producer.Event{Time: at, Message: ev.message}); err != nil {
					t.Fatal(err)
				}
			}
			e.routed("app", 3)
			r := e.following()
			months := func(stage string) {
				t.Helper()
				both, _ := e.answer(r, query.Request{Topic: "app"})
				if got := column(both, "month"); !slices.Equal(got, []string{"202602", "202602", "202601"}) {
					t.Errorf("%s: newest first, the months are %v", stage, got)
				}
				if got := column(both, "message"); len(got) != 3 || got[2] != "last of January" {
					t.Errorf("%s: newest first, the messages are %q", stage, got)
				}
				up, _ := e.answer(r, query.Request{Topic: "app", Ascending: true})
				if got := column(up, "month"); !slices.Equal(got, []string{"202601", "202602", "202602"}) {
					t.Errorf("%s: oldest first, the months are %v", stage, got)
				}
				jan := query.Request{Topic: "app", From: at(t, "2026-01-01T00:00:00Z"), To: at(t, "2026-02-01T00:00:00Z")}
				events, shards := e.answer(r, jan)
				if got := column(events, "message"); !slices.Equal(got, []string{"last of January"}) {
					t.Errorf("%s: January has %q", stage, got)
				}
				if len(shards) != 1 || !strings.HasPrefix(shards[0], "app-registry:2026-01:shard:") {
					t.Errorf("%s: January alone was read from %v", stage, shards)
				}
				if len(events) == 1 && stage == "stored" && shards[0] != schemas.PublicShardName("app", 202601, shardOf(t, events[0])) {
					t.Errorf("the event is in shard %v, the page names %v", events[0]["shard"], shards)
				}
			}
			if err := e.db.Ensure(t.Context(), &[]schemas.Topic{oneLane("app", 0)}[0]); err != nil {
				t.Fatal(err)
			}
			months("in SHARDS")
			e.sink()
			e.stored("app", 3, 20*time.Second)
			r = e.following() // the other may have them from the streams still
			months("stored")
			e.whole("app", 3)
			e.verify(3)
		})
	}
}

// The first and the last nanosecond of 63 months, leap years and a century's turn
// among them: each event is stored under its own month and found in it alone.
func TestEveryMonth(t *testing.T) {
	t.Parallel()
	e := running(t, oneLane("app", 0))
	p := e.producer("app")
	n := 0
	months := map[schemas.Month]int{}
	for m := schemas.Month(199901); m <= 200403; m = m.Next() {
		for _, ns := range []int64{m.Start(), m.End() - 1} {
			p.Log(producer.Event{Time: time.Unix(0, ns), Message: m.String()})
			n++
			months[m]++
		}
	}
	p.Log(producer.Event{Time: time.Unix(0, 1), Message: "1970-01"})
	e.flush(p)
	e.stored("app", uint64(n+1), 30*time.Second)
	if got := e.count("SELECT countIf(message != formatDateTime(ts, '%%Y-%%m') OR toYYYYMM(ts) != month) FROM %s", e.table("app")); got != 0 {
		t.Errorf("%d events are in a wrong month", got)
	}
	r := e.following()
	for _, m := range []schemas.Month{199912, 200002, 200102, 200402} { // a century's turn, leap years and not
		events, shards := e.answer(r, query.Request{Topic: "app", From: time.Unix(0, m.Start()), To: time.Unix(0, m.End())})
		if got := column(events, "message"); !slices.Equal(got, []string{m.String(), m.String()}) {
			t.Errorf("%s has the events %v", m, got)
		}
		if len(shards) != 1 || !strings.Contains(shards[0], ":"+m.String()+":") {
			t.Errorf("%s was read from %v", m, shards)
		}
	}
	all, shards := e.answer(r, query.Request{Topic: "app", Limit: 100})
	if len(all) != n+1 {
		t.Errorf("all pages have %d events, want %d", len(all), n+1)
	}
	if slices.Sort(shards); len(slices.Compact(shards)) != len(months)+1 {
		t.Errorf("all pages were read from %d shards, want %d", len(shards), len(months)+1)
	}
	e.whole("app", uint64(n+1))
	e.verify(uint64(n + 1))
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func shardOf(t testing.TB, event map[string]any) schemas.Shard {
	t.Helper()
	s, err := schemas.ParseShard(fmt.Sprint(event["shard"]))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
