package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// Facets, fields, values and neighbours count and find each event once, whether it is in
// EVENTS, in SHARDS or stored.
func TestFacetsOfEveryPlace(t *testing.T) {
	t.Parallel()
	topic := newTopic("app", schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality})
	e := start(t, topic)
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	r := e.following()
	p := e.producer("app")
	const each = 60
	begin := time.Now().UTC().Truncate(time.Hour)
	n := 0
	publish := func() {
		for range each {
			ev := producer.Event{
				Time: begin.Add(time.Duration(n) * time.Second), Level: []string{"info", "info", "error"}[n%3], UserID: fmt.Sprintf("u-%d", n),
				Message: fmt.Sprintf("m-%d", n), Attrs: []schemas.Attr{schemas.String("endpoint", "/a")},
			}
			if n%2 == 0 {
				ev.Attrs = append(ev.Attrs, schemas.String("host", fmt.Sprintf("h-%d", n%4)), schemas.String("odd 'key'", "x"))
			}
			n++
			if err := p.Publish(t.Context(), ev); err != nil {
				t.Fatal(err)
			}
		}
	}
	lag := func(unrouted, unstored uint64) {
		t.Helper()
		eventually(t, time.Minute, func() error {
			rep, err := r.Lag(t.Context(), "app")
			if err == nil && (rep.Topics[0].Unrouted != unrouted || rep.Topics[0].Unstored == nil || *rep.Topics[0].Unstored != unstored) {
				err = fmt.Errorf("%+v, want %d unrouted and %d unstored", rep.Topics, unrouted, unstored)
			}
			if err == nil && ((rep.Topics[0].UnroutedBytes > 0) != (unrouted > 0) || (*rep.Topics[0].UnstoredBytes > 0) != (unstored > 0)) {
				err = fmt.Errorf("%d bytes unrouted and %d unstored, of %d and %d events", rep.Topics[0].UnroutedBytes, *rep.Topics[0].UnstoredBytes, unrouted, unstored)
			}
			return err
		})
	}
	stopRouter, stopSink := e.router(), e.sink()
	publish()
	lag(0, 0)
	stopSink()
	publish()
	lag(0, each)
	stopRouter()
	publish()
	lag(each, each)

	got, err := r.Facets(t.Context(), query.FacetRequest{Topic: "app", Fields: []string{"level", "attributes.host", "attributes['odd \\'key\\'']", "endpoint", "user_id"}, MaxValues: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := []query.Facet{
		{Field: "level", Values: []query.ValueCount{{Value: "info", Count: 120}, {Value: "error", Count: 60}}},
		{Field: "attributes.host", Values: []query.ValueCount{{Value: "h-0", Count: 45}, {Value: "h-2", Count: 45}}, Empty: 90},
		{Field: "attributes['odd \\'key\\'']", Values: []query.ValueCount{{Value: "x", Count: 90}}, Empty: 90},
		{Field: "endpoint", Values: []query.ValueCount{{Value: "/a", Count: 180}}},
		{Field: "user_id", Values: []query.ValueCount{{Value: "u-0", Count: 1}, {Value: "u-1", Count: 1}}, Other: 178},
	}
	if d := cmp.Diff(want, got.Facets); d != "" || got.Count != 3*each || len(got.Shards) == 0 {
		t.Errorf("%d events, shards %v: %s", got.Count, got.Shards, d)
	}
	got, err = r.Facets(t.Context(), query.FacetRequest{Topic: "app", Fields: []string{"level"}, Where: "level = 'error'", From: begin.Add(30 * time.Second)})
	if err != nil || got.Count != 50 || got.Facets[0].Values[0].Count != 50 {
		t.Errorf("with a filter and a range: %+v, %v", got, err)
	}
	fields, err := r.Fields(t.Context(), query.CompletionRequest{Topic: "app", Prefix: "attributes.h"})
	if err != nil || fields.Read != 3*each || fields.Sampled || len(fields.Fields) != 1 || fields.Fields[0].Name != "attributes.host" || fields.Fields[0].Count != 90 {
		t.Errorf("fields: %+v, %v", fields, err)
	}
	fields, err = r.Fields(t.Context(), query.CompletionRequest{Topic: "app"})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for _, f := range fields.Fields {
		counts[f.Name] = f.Count
	}
	for name, want := range map[string]uint64{"ts": 180, "level": 180, "trace_id": 0, "endpoint": 180, `attributes['odd \'key\'']`: 90} {
		if got, ok := counts[name]; !ok || got != want {
			t.Errorf("field %s has %d events, want %d: %v", name, got, want, counts)
		}
	}
	values, err := r.Values(t.Context(), query.CompletionRequest{Topic: "app", Field: "user_id", Prefix: "u-17"})
	if err != nil || len(values.Values) != 11 || values.Read != 3*each {
		t.Errorf("values: %+v, %v", values, err)
	}
	for name, bad := range map[string]query.FacetRequest{
		"no field": {}, "ts": {Fields: []string{"ts"}}, "unknown": {Fields: []string{"nope"}}, "n": {Fields: []string{"level"}, MaxValues: 101}, "shards": {Fields: []string{"level"}, MaxShards: -1},
	} {
		bad.Topic = "app"
		if _, err := r.Facets(t.Context(), bad); !errors.Is(err, schemas.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	around(t, r, begin)
}

// around asks for the neighbours of an event in each place, and of the first and the last.
func around(t *testing.T, r *query.Reader, begin time.Time) {
	message := func(raw json.RawMessage) string {
		var ev struct{ ID, Message string }
		if err := json.Unmarshal(raw, &ev); err != nil {
			t.Fatal(err)
		}
		return ev.Message
	}
	for _, c := range []struct{ at, before, after int }{{0, 0, 4}, {1, 1, 4}, {58, 4, 4}, {119, 4, 4}, {178, 4, 1}, {179, 4, 0}} {
		ts := begin.Add(time.Duration(c.at) * time.Second)
		page, err := r.Query(t.Context(), query.Request{Topic: "app", From: ts, To: ts.Add(1)})
		if err != nil || len(page.Events) != 1 {
			t.Fatalf("%d: %v, %v", c.at, page, err)
		}
		var ev struct{ ID string }
		_ = json.Unmarshal(page.Events[0], &ev)
		got, err := r.Around(t.Context(), query.AroundRequest{Topic: "app", Ts: ts, ID: ev.ID, N: 4})
		if err != nil || len(got.Before) != c.before || len(got.After) != c.after || message(got.Event) != fmt.Sprintf("m-%d", c.at) {
			t.Fatalf("around %d: %+v, %v", c.at, got, err)
		}
		for i, raw := range append(append(got.Before, got.Event), got.After...) {
			if want := fmt.Sprintf("m-%d", c.at-c.before+i); message(raw) != want {
				t.Errorf("around %d: %s, want %s", c.at, message(raw), want)
			}
		}
	}
	ts := begin.Add(90 * time.Second)
	page, _ := r.Query(t.Context(), query.Request{Topic: "app", From: ts, To: ts.Add(1)})
	var ev struct{ ID string }
	_ = json.Unmarshal(page.Events[0], &ev)
	got, err := r.Around(t.Context(), query.AroundRequest{Topic: "app", Ts: ts, ID: ev.ID, N: 2, Where: "level = 'error'"})
	if err != nil || len(got.Before) != 2 || message(got.Before[1]) != "m-89" || message(got.After[0]) != "m-92" {
		t.Errorf("with a filter: %+v, %v", got, err)
	}
	if _, err := r.Around(t.Context(), query.AroundRequest{Topic: "app", Ts: ts.Add(1), ID: ev.ID}); !errors.Is(err, query.ErrNoEvent) {
		t.Errorf("of no event: %v", err)
	}
}
