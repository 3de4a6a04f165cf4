package evaluate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/prometheus"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

const records = `
groups:
- name: rooms
  interval: 1s
  topic: metrics
  labels: {team: infra}
  rules:
  - {record: "room:temperature:max", expr: max by (room) (temperature), labels: {of: hosts}}
  - {record: "room:temperature:twice", expr: '2 * room:temperature:max'}
  - {alert: Hot, expr: 'room:temperature:twice > 180'}
`

// series are the values of a metric's series over the last hour, by its labels.
func (g *rig) series(name string) (out map[string]map[time.Time]float64, err error) {
	out = map[string]map[time.Time]float64{}
	q := prometheus.Query{Topic: "metrics", Expr: name + "[1h]", Start: time.Now()}
	err = prometheus.New(g.reader()).Exec(g.ctx, &q, func(result *promql.Result, _ string) error {
		all, err := result.Matrix()
		for _, s := range all {
			points := map[time.Time]float64{}
			for _, p := range s.Floats {
				at := time.UnixMilli(p.T)
				if _, twice := points[at]; twice {
					return fmt.Errorf("%s has two samples at %s", s.Metric, at)
				}
				points[at] = p.F
			}
			out[s.Metric.String()] = points
		}
		return err
	})
	return out, err
}

// TestRecords holds that a rule records the value of each series once for each instant, that a rule of its group reads it at the same
// instant, and that a second process which evaluates
// the same instants doubles no sample.
func TestRecords(t *testing.T) {
	t.Parallel()
	for name, two := range map[string]bool{"one process evaluates": false, "two evaluate at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
			g.apply(records)
			e := g.evaluator(nil)
			g.rounds(e, func() error { return nil })
			g.temperatures(map[string]float64{"a": 95, "b": 50})
			g.rounds(e, g.has(`Hot {of="hosts", room="r1", team="infra"} firing`))
			other := e
			if two { // as while a lease moves: what one records, the other records again
				other = g.evaluator(nil)
			}
			const once, twice = `{__name__="room:temperature:max", of="hosts", room="r1", team="infra"}`, `{__name__="room:temperature:twice", of="hosts", room="r1", team="infra"}`
			g.rounds(e, func() error {
				if err := other.Round(g.ctx); err != nil {
					return err
				}
				single, err := g.series("room:temperature:max")
				if err != nil {
					return err
				}
				double, err := g.series("room:temperature:twice")
				if err != nil {
					return err
				}
				if len(single) != 1 || len(double) != 1 || len(single[once]) < 3 || len(double[twice]) < 3 {
					return fmt.Errorf("%v, %v", single, double)
				}
				alike := 0
				for at, v := range double[twice] {
					of, there := single[once][at]
					if there && (of != 95 || v != 190) {
						t.Errorf("at %s %v, twice is %v", at, of, v)
					}
					if there {
						alike++
					}
				}
				if alike == 0 {
					return fmt.Errorf("no instant has both: %v, %v", single, double)
				}
				return g.saysRecorded()
			})
		})
	}
}

// saysRecorded is nil once status and list say that the first rule recorded one series.
func (g *rig) saysRecorded() error {
	status, err := g.Status(g.ctx)
	if err != nil {
		return err
	}
	if r := &status[0].Rules[0]; r.Wrong != "" || r.Recorded != 1 || r.Took <= 0 {
		return fmt.Errorf("the status is %+v", r)
	}
	list, err := g.List(g.ctx)
	if err == nil && (len(list.Recording) != 2 || list.Recording[0].Record != "room:temperature:max" || list.Recording[0].Series != 1 || list.Recording[0].At.IsZero() || list.Recording[0].Error != "") {
		err = fmt.Errorf("the list is %+v", list)
	}
	return err
}

// TestRecordedTwice holds that of two samples of one series and instant, as two processes write them, one counts: the last.
func TestRecordedTwice(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
	e := g.evaluator(nil)
	rule := &alerts.Rule{Record: "m", Topic: "metrics"}
	at := time.Now().Truncate(time.Second)
	of := labels.FromStrings("room", "r1")
	for _, v := range []float64{95, 96} {
		w := recorder{e: e, topic: "metrics"}
		all, err := points(rule, recorded{of.String(): {of, v}}, nil, at.UnixNano())
		if err == nil {
			err = w.write(g.ctx, all)
		}
		w.close()
		if err != nil {
			t.Fatal(err)
		}
	}
	embeddedtest.Eventually(t, longestWait, func() error {
		events, err := g.reader().Query(g.ctx, query.Request{Topic: "metrics", Limit: 10})
		if err != nil {
			return err
		}
		series, err := g.series("m")
		if err != nil {
			return err
		}
		points := series[`{__name__="m", room="r1"}`]
		if len(events.Events) != 2 || len(series) != 1 || len(points) != 1 || points[at] != 96 {
			return fmt.Errorf("%d events, %v; want two, and one sample of 96", len(events.Events), series)
		}
		return nil
	})
}

// TestErasedIsNotRecordedAgain holds that who is erased is written neither by what was recorded before, nor by what was read before
// the erasure was entered.
func TestErasedIsNotRecordedAgain(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
	e := g.evaluator(nil)
	of := labels.FromStrings("user_id", "ada")
	rr := &ruleRun{bound: bound{group: &alerts.Group{Name: "g"}, rule: &alerts.Rule{Record: "m", Expr: `vector(1)`, Topic: "metrics"}}}
	w := recorder{e: e, topic: "metrics"}
	t.Cleanup(w.close)
	before, err := w.erasures(g.ctx)
	if err != nil {
		t.Fatal(err)
	}
	hers, err := pointOf("temperature", of, 5, "", time.Now().UnixNano())
	if err != nil {
		t.Fatal(err)
	}
	g.send("metrics", hers)
	g.erase("metrics", "ada")
	if err := w.still(g.ctx, before, "so"); err == nil {
		t.Error("an erasure that was entered meanwhile is not noticed")
	}
	at := time.Now().Truncate(time.Second).UnixNano()
	a := answer{rr: rr, at: at, before: recorded{of.String(): {of, 1}}, erased: before}
	if err := w.record(g.ctx, &a); err != nil || a.wrote != 1 || a.erased == before {
		t.Fatalf("%+v: %v", a, err)
	}
	embeddedtest.Eventually(t, longestWait, func() error {
		events, err := g.reader().Query(g.ctx, query.Request{Topic: "metrics", Limit: 10})
		if err == nil && len(events.Events) != 1 { // of vector(1)
			err = fmt.Errorf("%d events, want one: %s", len(events.Events), events.Events)
		}
		return err
	})
	// The same labels, known under the erasures of now, are ended.
	if all, err := points(rr.rule, recorded{}, recorded{of.String(): {of, 1}}, at); err != nil || len(all) != 1 || all[0].UserID != "ada" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestRecordedWhileAnErasureIsEntered holds that what a rule records of a person between the fence of an erasure and its entry goes too, and
// that the rule says what to do where the erasure is entered while it writes.
func TestRecordedWhileAnErasureIsEntered(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
	e := g.evaluator(nil)
	at := time.Now().Truncate(time.Second).Add(-time.Minute)
	instant := func() *answer {
		rule := &alerts.Rule{Record: "m", Expr: `vector(1)`, Topic: "metrics", Labels: map[string]string{"user_id": "ada"}}
		at = at.Add(time.Second)
		return &answer{rr: &ruleRun{bound: bound{group: &alerts.Group{Name: "g"}, rule: rule}}, at: at.UnixNano()}
	}
	w := recorder{e: e, topic: "metrics"}
	t.Cleanup(w.close)
	records := func() (string, error) {
		a := instant()
		a.erased, _ = w.erasures(g.ctx)
		err := w.record(g.ctx, a)
		return a.erased, err
	}
	x, err := erasure.New(g.ctx, erasure.Config{Registry: g.reg, Reader: g.reader(), DB: g.db, Within: longestWait, Crash: func(at string) {
		if at == "erase.fenced" {
			if _, err := records(); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	before, err := records()
	if err != nil {
		t.Fatal(err)
	}
	job, err := x.Start(g.ctx, erasure.Request{Topic: "metrics", Users: []string{"ada"}})
	if err == nil {
		job, err = x.Run(g.ctx, job.Topic, job.ID)
	}
	if err != nil || job.Rows != 2 {
		t.Errorf("%d samples of her went, want both: %v", job.Rows, err)
	}
	if err := w.still(g.ctx, before, w.again()); err == nil || !strings.Contains(failure(err), "`almanac erase metrics --user NAME --yes`") {
		t.Errorf("it says %v", err)
	}
}

// TestMeant holds that an erasure whose fence is raised is another for who goes by it.
func TestMeant(t *testing.T) {
	t.Parallel()
	one, raised := ledger.Erasures{{ID: "a", Fence: 5}}, ledger.Erasures{{ID: "a", Fence: 6}}
	if meant(one) == meant(raised) || meant(one) == meant(nil) || meant(one) != meant(ledger.Erasures{{ID: "a", Fence: 5, State: ledger.Erased}}) {
		t.Error("two ledgers are one, or one is two")
	}
}

// TestRecorderStops holds that what could not be written holds up the rules of its topic once, and that two rules do not write one series.
func TestRecorderStops(t *testing.T) {
	t.Parallel()
	failed := errors.New("the stream is full")
	records, reads, other := &alerts.Rule{Record: "n", Expr: "up"}, &alerts.Rule{Alert: "A", Expr: "m > 1"}, &alerts.Rule{Alert: "B", Expr: "up > 1"}
	w := recorder{fresh: []string{"m"}, failed: failed}
	for rule, want := range map[*alerts.Rule]error{records: failed, reads: failed, other: nil} {
		if err := w.stored(t.Context(), rule); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", rule.Title(), err, want)
		}
	}
	of := recorded{`{a="1"}`: {}}
	at := time.Now().UnixNano()
	if err := w.unseen(records, of, at); err != nil {
		t.Error(err)
	}
	if err := w.unseen(records, of, at+int64(time.Second)); err != nil {
		t.Errorf("another instant: %v", err)
	}
	if err := w.unseen(records, of, at); err == nil {
		t.Error("two rules write one series")
	}
}

// TestRecordedOf holds which series a rule makes of a result, and which it refuses.
func TestRecordedOf(t *testing.T) {
	t.Parallel()
	sample := func(v float64, of ...string) promql.Sample {
		return promql.Sample{Metric: labels.FromStrings(of...), F: v}
	}
	many := make(promql.Vector, 1001)
	for i := range many {
		many[i] = sample(1, "n", fmt.Sprint(i))
	}
	for name, c := range map[string]struct {
		all   promql.Vector
		of    map[string]string
		limit int
		want  []string
		says  string
	}{
		"labels of the rule":     {all: promql.Vector{sample(1, "__name__", "up", "job", "a")}, of: map[string]string{"job": "b", "x": "y"}, want: []string{`{job="b", x="y"}`}},
		"an empty one":           {all: promql.Vector{sample(1, "__name__", "up", "job", "a", "host", "h")}, of: map[string]string{"job": ""}, want: []string{`{host="h"}`}},
		"two that become one":    {all: promql.Vector{sample(1, "job", "a"), sample(2, "job", "b")}, of: map[string]string{"job": ""}, says: "two series {}"},
		"as many as the limit":   {all: promql.Vector{sample(1, "job", "a"), sample(2, "job", "b")}, limit: 2, want: []string{`{job="a"}`, `{job="b"}`}},
		"more than the limit":    {all: promql.Vector{sample(1, "job", "a"), sample(2, "job", "b")}, limit: 1, says: "the limit of its group is 1"},
		"more than any rule has": {all: many, says: "has 1001 series, the limit is 1000"},
		"a long label":           {all: promql.Vector{sample(1, "job", strings.Repeat("x", 3000))}, says: "sum by fewer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := recordedOf(c.all, &alerts.Rule{Record: "r", Labels: c.of}, c.limit)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("it says %v, want %q", err, c.says)
				}
				return
			}
			if names := slices.Sorted(maps.Keys(got)); err != nil || !slices.Equal(names, c.want) {
				t.Errorf("%q, %v; want %q", names, err, c.want)
			}
		})
	}
}

// TestPointsOfRecords holds that series that are gone end once, and what a sample is as an event.
func TestPointsOfRecords(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	of := func(name string, v float64) recorded {
		l := labels.FromStrings("host", name, "user_id", "u", "value", "x")
		return recorded{l.String(): {l, v}}
	}
	r := &alerts.Rule{Record: "m", QueryOffset: alerts.Span(time.Minute)}
	for name, c := range map[string]struct {
		now, before recorded
		want        []string
	}{
		"the same series": {now: of("a", 1), before: of("a", 2), want: []string{"a 1 gauge"}},
		"another":         {now: of("a", 1), before: of("b", 2), want: []string{"a 1 gauge", "b 0 stale"}},
		"none":            {before: of("b", 2), want: []string{"b 0 stale"}},
		"not a number":    {now: of("a", math.NaN()), want: []string{"a 0 nan"}},
		"without an end":  {now: of("a", math.Inf(1)), want: []string{"a 0 +inf"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := points(r, c.now, c.before, at.UnixNano())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range all {
				attrs := map[string]string{}
				for _, a := range e.Attrs {
					attrs[a.Key] = a.Text()
				}
				got = append(got, attrs["host"]+" "+attrs[kinds.ColValue]+" "+attrs[kinds.ColPoints])
				if e.Type != "m" || e.UserID != "u" || !e.Time.Equal(at.Add(-time.Minute)) || attrs["label.value"] != "x" {
					t.Errorf("%+v", e)
				}
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestLeft holds that a try says each thing that it left out once, and how many more there were.
func TestLeft(t *testing.T) {
	t.Parallel()
	var l left
	for i := range maxLeft + 7 {
		l.add("app", fmt.Errorf("rule %d", i))
		l.add("app", errors.New("rule 0"))
	}
	if all := l.all(); len(all) != maxLeft+1 || all[0] != "topic app: rule 0" || all[maxLeft] != "and 7 more of such" {
		t.Errorf("%d: %q", len(all), all)
	}
}
