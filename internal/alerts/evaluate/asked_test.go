package evaluate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// temperatures are points of a gauge, now.
func (g *rig) temperatures(of map[string]float64) {
	g.t.Helper()
	var all []schemas.Event
	for host, v := range of {
		e, err := metric.Point{Name: "temperature", Value: v, Points: metric.Gauge, Labels: []schemas.Attr{schemas.String("host", host), schemas.String("room", "r1")}}.Event()
		if err != nil {
			g.t.Fatal(err)
		}
		all = append(all, e)
	}
	g.send("metrics", all...)
}

const hot = `
groups:
- name: rooms
  interval: 1s
  rules:
  - alert: Hot
    expr: temperature > 90
    labels: {severity: page, room: "{{ $labels.room }}!"}
    annotations: {summary: "{{ $labels.host }} has {{ $value | humanize }}"}
  - {alert: Never, expr: temperature > 1e9}
  - {alert: Waits, expr: sum(temperature) > 90, for: 1h}
  receivers:
  - {name: ops, url: "http://127.0.0.1:9/"}
`

// TestExpression holds that each series of an expression is an alert of its own, which fires once and ends when the series is gone,
// whatever point its evaluator is killed at.
func TestExpression(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "committed", "delivered"} {
		t.Run("killed "+point, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
			groups, err := alerts.ParseFor([]byte(hot), "metrics")
			if err == nil {
				err = g.Apply(g.ctx, groups)
			}
			if err != nil {
				t.Fatal(err)
			}
			first := g.evaluator(func(at string) {
				if at == point {
					panic(killed{})
				}
			})
			g.rounds(first, func() error { return nil })
			g.temperatures(map[string]float64{"a": 95000, "b": 50, "c": 96})
			next := first
			if point != "" {
				dies(g, first)
				next = g.evaluator(nil)
			}
			fired := []string{`Hot {host="a", room="r1"} firing`, `Hot {host="c", room="r1"} firing`, "Waits {} pending"}
			g.rounds(next, g.has(fired...))
			g.temperatures(map[string]float64{"a": 20})
			g.rounds(next, g.has(append(fired, `Hot {host="a", room="r1"} inactive`)...))
			page, err := g.History(g.ctx, alerts.Past{})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.Alerts {
				if strings.Contains(a.Value, `"a"`) && (a.Count != "95000" || a.Annotations["summary"] != "a has 95k" || a.Labels["host"] != "a" || a.Labels["room"] != "r1!" || a.Labels["severity"] != "page") {
					t.Errorf("%s says %v %v of %s", a.State, a.Annotations, a.Labels, a.Count)
				}
			}
			if told := g.told("ops"); len(told) != 3 {
				t.Errorf("the receiver is told of %q", told)
			}
			status, err := g.Status(g.ctx)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []alerts.AlertState{"firing", "inactive", "pending"} {
				if r := &status[0].Rules[i]; r.Wrong != "" || r.UpTo.IsZero() || r.State() != want {
					t.Errorf("rule %s is %s, evaluated up to %s: %s", r.Alert, r.State(), r.UpTo, r.Wrong)
				}
			}
		})
	}
}

// An expression that cannot be evaluated leaves its alerts as they are, and says why until it can.
func TestExpressionThatFails(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
	g.apply(`groups: [{name: g, topic: metrics, interval: 1s, rules: [{alert: Any, expr: '{__name__=~"temperature|other"} > 1'}, {alert: NaN, expr: "0/0"}]}]`)
	e := g.evaluator(nil)
	g.temperatures(map[string]float64{"a": 5})
	fired := []string{`Any {host="a", room="r1"} firing`, "NaN {} firing"}
	g.rounds(e, g.has(fired...))
	other, err := metric.Point{Name: "other", Value: 7, Points: metric.Gauge, Labels: []schemas.Attr{schemas.String("host", "a"), schemas.String("room", "r1")}}.Event()
	if err != nil {
		t.Fatal(err)
	}
	g.send("metrics", other)
	said := func() error {
		if e.runs["metrics"] == nil {
			return fmt.Errorf("there is no run")
		}
		status, err := g.Status(g.ctx)
		if err != nil {
			return err
		}
		anyOf, nan := &status[0].Rules[0], &status[0].Rules[1]
		if !strings.Contains(anyOf.Wrong, "differ by the metric's name alone") || anyOf.State() != "firing" || nan.Wrong != "" || nan.State() != "firing" || nan.Alerts[0].Count != "NaN" {
			return fmt.Errorf("%q, %s; %q, %s", anyOf.Wrong, anyOf.State(), nan.Wrong, nan.State())
		}
		return nil
	}
	g.rounds(e, said)
	again := g.evaluator(nil) // knows it too
	g.rounds(again, func() error {
		if r := again.runs["metrics"]; r == nil || len(r.rules) != 2 {
			return fmt.Errorf("no run is loaded")
		}
		return said()
	})
	if err := g.has(fired...)(); err != nil {
		t.Error(err)
	}
}

// Who is named by a label of a series is the user of the alert's event.
func TestExpressionNamesAUser(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
	g.apply(`groups: [{name: g, topic: metrics, interval: 1s, rules: [{alert: Slow, expr: latency > 1}]}]`)
	e := g.evaluator(nil)
	ev, err := metric.Point{Name: "latency", Value: 5, Points: metric.Gauge}.Event()
	if err != nil {
		t.Fatal(err)
	}
	ev.UserID = "u-7"
	g.send("metrics", ev)
	g.rounds(e, g.has(`Slow {user_id="u-7"} firing`))
	page, err := g.reader().Query(g.ctx, query.Request{Topic: schemas.TopicAlerts, Where: `user_id = "u-7"`})
	if err != nil || len(page.Events) != 1 {
		t.Errorf("%d events of alerts are the user's: %v", len(page.Events), err)
	}
}

// TestMeterRules holds that rules over a meter ask for what bills say.
func TestMeterRules(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopicOf(kinds.Meter, "bytes"))
	g.apply(`
groups:
- name: usage
  topic: bytes
  interval: 1s
  rules:
  - {alert: Sum, meter: stored, window: 1h, condition: "> 100", by: provider}
  - {alert: Count, meter: stored, measure: count, window: 1h, condition: ">= 3", by: space}
  - {alert: Size, meter: stored, measure: size, condition: "> 140", by: user_id}
  - {alert: All, meter: stored, window: 24h, condition: "> 200"}
  - {alert: Other, meter: sent, window: 1h, condition: "> 0"}
`)
	e := g.evaluator(nil)
	n := 0
	send := func(provider, space, customer string, deltas ...int64) {
		t.Helper()
		var all []schemas.Event
		for _, delta := range deltas {
			n++
			ev, err := meter.Diff{Meter: "stored", Provider: provider, Space: space, Customer: customer, Cause: fmt.Sprint("c", n), Delta: delta, Time: time.Now()}.Event()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, ev, ev) // the same cause twice counts once
		}
		g.send("bytes", all...)
	}
	send("p1", "s1", "u1", 60, 60)
	send("p2", "s2", "u2", 10, 20, 30)
	want := []string{"Sum p1 firing", "Count s2 firing"}
	g.rounds(e, g.has(want...))
	send("p1", "s1", "u1", 30)
	want = append(want, "Size u1 firing", "Count s1 firing", "All  firing")
	g.rounds(e, g.has(want...))
	send("p1", "s1", "u1", -100)
	g.rounds(e, g.has(append(want, "Sum p1 inactive", "Size u1 inactive", "All  inactive")...))
}

// TestUnusualUsage holds that what a meter measured is held against the same window on the days before, by customer: more, less and
// none at all are unusual, and what is new or varies is not.
func TestUnusualUsage(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopicOf(kinds.Meter, "bytes"))
	g.apply(`
groups:
- name: usage
  topic: bytes
  interval: 3s
  rules:
  - {alert: Unusual, meter: sent, window: 2h, unusual: 5, days: 5, least: 10, by: user_id, annotations: {summary: "{{ $labels.user_id }} sent {{ $value }}"}}
`)
	e := g.evaluator(nil)
	now, n := time.Now(), 0
	sent := func(customer string, day int, delta int64) schemas.Event {
		n++
		at := now.Add(-time.Duration(day)*24*time.Hour - 10*time.Minute) // in the windows of the hour and a half to come
		ev, err := meter.Diff{Meter: "sent", Provider: "p", Space: "s", Customer: customer, Cause: fmt.Sprint("c", n), Delta: delta, Time: at}.Event()
		if err != nil {
			t.Fatal(err)
		}
		return ev
	}
	var all []schemas.Event
	for customer, days := range map[string][]int64{ // of today, and of each day before
		"more": {1000, 100, 104, 97, 101, 99}, "less": {50, 100, 104, 97, 101, 99}, "none": {0, 100, 104, 97, 101, 99}, "steady": {107, 100, 104, 97, 101, 99},
		"new": {1000, 1, 1, 0, 0, 0}, "varies": {290, 10, 200, 90, 160, 110}, "small": {9, 1, 1, 1, 1, 1},
	} {
		for day, delta := range days {
			if delta != 0 {
				all = append(all, sent(customer, day, delta))
			}
		}
	}
	g.send("bytes", all...)
	want := []string{"Unusual more firing", "Unusual less firing", "Unusual none firing"}
	g.rounds(e, g.has(want...))
	g.send("bytes", sent("none", 0, 101))
	g.rounds(e, g.has(append(want, "Unusual none inactive")...))
}

// TestTryAsked holds that rules that are asked for are tried at each of their instants, and not too often.
func TestTryAsked(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
	groups, err := alerts.Parse([]byte(`groups: [{name: g, topic: metrics, interval: 2s, rules: [{alert: Hot, expr: temperature > 90, annotations: {summary: "{{ $value }}"}}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	e := g.evaluator(nil)
	began := time.Now().Add(-time.Minute)
	g.temperatures(map[string]float64{"a": 95, "b": 3})
	g.rounds(e, func() error {
		made, _, err := e.try(g.ctx, groups, began)
		if err != nil {
			return err
		}
		tried := alerts.Tried(made)
		if len(tried) != 1 || tried[0].Value != `{host="a", room="r1"}` || tried[0].State != "firing" || tried[0].Annotations["summary"] != "95" {
			return fmt.Errorf("%+v", tried)
		}
		return nil
	})
	if _, _, err := e.try(g.ctx, groups, time.Now().Add(-3*time.Hour)); err == nil || !strings.Contains(err.Error(), "would be evaluated 5400 times, the limit is 2000") {
		t.Errorf("of three hours: %v", err)
	}
	if err := g.has()(); err != nil {
		t.Error(err)
	}
}

// Each day of what is usual counts among the evaluations of a try.
func TestTriable(t *testing.T) {
	t.Parallel()
	groups, err := alerts.Parse([]byte(`groups: [{name: g, topic: bytes, rules: [{alert: U, meter: sent, window: 1h, unusual: 5, days: 7, interval: 1m}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	var e *Evaluator // it asks nothing
	if err := e.triable(groups, time.Now().Add(-4*time.Hour)); err != nil {
		t.Errorf("of 1,920 evaluations: %v", err)
	}
	if err := e.triable(groups, time.Now().Add(-5*time.Hour)); err == nil || !strings.Contains(err.Error(), "would be evaluated 2400 times") {
		t.Errorf("of 2,400 evaluations: %v", err)
	}
}
