package evaluate

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/events"
	"github.com/almanac-events/almanac/schemas"
)

// TestAdopt holds which of what the job has and of what its events have is taken.
func TestAdopt(t *testing.T) {
	t.Parallel()
	at := func(seconds int) int64 { return time.Unix(1_800_000_000+int64(seconds), 0).UnixNano() }
	event := func(seconds int, value, key string, state decide.State) events.Read {
		return events.Read{Time: time.Unix(0, at(seconds)), State: state, Key: key, Rule: "g/r", Attrs: map[string]string{events.AttrGroup: "g", events.AttrValue: value}}
	}
	job := func(seconds int, key string) decide.Named {
		return decide.Named{Alert: decide.Alert{State: decide.Firing, Since: at(seconds), Met: at(seconds), At: at(seconds)}, Group: "g", Rule: "r", Key: key}
	}
	var many []events.Read
	for i := range alerts.MaxTopicAlerts + 3 {
		many = append(many, event(0, fmt.Sprint(i), fmt.Sprint("k", i), decide.Firing))
	}
	for name, c := range map[string]struct {
		has         []decide.Named
		known       map[string]events.Read
		last        []events.Read
		want        []string // keys; nil: the bound of alerts
		newest      int
		leftOut     bool
		decidedUpTo int64
	}{
		"a later event":        {has: []decide.Named{job(0, "a")}, known: map[string]events.Read{"a": event(0, "u", "a", decide.Firing)}, last: []events.Read{event(9, "u", "b", decide.Firing)}, want: []string{"b"}, newest: 1, decidedUpTo: at(8)},
		"it ended":             {has: []decide.Named{job(0, "a")}, known: map[string]events.Read{"a": event(0, "u", "a", decide.Firing)}, last: []events.Read{event(9, "u", "b", decide.Inactive)}, want: []string{}, newest: 1, decidedUpTo: at(8)},
		"an event from before": {has: []decide.Named{job(9, "a")}, known: map[string]events.Read{"a": event(9, "u", "a", decide.Firing)}, last: []events.Read{event(5, "u", "b", decide.Inactive)}, want: []string{"a"}, decidedUpTo: at(4)},
		"the same":             {has: []decide.Named{job(9, "a")}, known: map[string]events.Read{"a": event(9, "u", "a", decide.Firing)}, last: []events.Read{event(9, "u", "a", decide.Firing)}, want: []string{"a"}, decidedUpTo: at(8)},
		"others, and long ago": {has: []decide.Named{job(0, "a")}, known: map[string]events.Read{"a": event(0, "u", "a", decide.Firing)}, last: []events.Read{event(900, "v", "b", decide.Firing), event(800, "w", "c", decide.Firing), event(700, "x", "d", decide.Firing)}, want: []string{"a", "b", "c", "d"}, newest: 2, decidedUpTo: at(899)},
		"too many":             {last: many, newest: alerts.MaxTopicAlerts + 3, leftOut: true, decidedUpTo: at(-1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var faults []error
			r := &run{e: &Evaluator{cfg: Config{Hooks: Hooks{Fault: func(_ string, err error) { faults = append(faults, err) }}}}}
			r.state.Alerts = c.has
			newest := r.adopt(c.last, c.known)
			if len(newest) != c.newest {
				t.Errorf("%d are the newest, want %d", len(newest), c.newest)
			}
			if r.state.Decided != c.decidedUpTo {
				t.Errorf("evaluated up to %v, want %v", time.Unix(0, r.state.Decided), time.Unix(0, c.decidedUpTo))
			}
			if left := errors.Is(errors.Join(faults...), ErrLeftOut); left != c.leftOut {
				t.Errorf("faults are %v", faults)
			}
			if c.want == nil {
				if len(r.state.Alerts) != alerts.MaxTopicAlerts {
					t.Errorf("%d alerts", len(r.state.Alerts))
				}
				return
			}
			keys := []string{}
			for i := range r.state.Alerts {
				keys = append(keys, r.state.Alerts[i].Key)
			}
			slices.Sort(keys)
			if !slices.Equal(keys, c.want) {
				t.Errorf("the alerts are %q, want %q", keys, c.want)
			}
		})
	}
}

// TestNamesAlike holds that what is known is made again of the events of two rules whose names and groups are alike when they are joined.
func TestNamesAlike(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(`
groups:
- {name: a, topic: app, rules: [{alert: b/c, where: 'type = "login_failed"', window: 1h, condition: ">= 5"}]}
- {name: a/b, topic: app, rules: [{alert: c, where: 'type = "login_failed"', window: 1h, condition: ">= 5"}]}
`)
	e := g.evaluator(nil)
	g.send("app", failures(5, "u1")...)
	g.rounds(e, g.has("b/c  firing", "c  firing"))
	e.close()
	listed := func() (keys []string) {
		list, err := g.List(g.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Alerts {
			keys = append(keys, list.Alerts[i].Key)
		}
		slices.Sort(keys)
		return keys
	}
	want := listed()
	key, _ := g.job("app")
	g.deleteKey(key, nil)
	e = g.evaluator(nil)
	g.rounds(e, func() error {
		if now := listed(); !slices.Equal(now, want) {
			return fmt.Errorf("listed are %q, want %q", now, want)
		}
		return g.has("b/c  firing", "c  firing")()
	})
}

// TestLatest holds that the times of rules that are asked for stay where a rebuild went back for those that count, and that neither lie ahead of the log.
func TestLatest(t *testing.T) {
	t.Parallel()
	upTo := time.Unix(1_800_000_000, 5)
	const hour, second = int64(time.Hour), int64(time.Second)
	counts, asked := &ruleRun{bound: bound{rule: &alerts.Rule{Window: alerts.Span(time.Minute)}}}, &ruleRun{bound: bound{rule: &alerts.Rule{Expr: "up"}}}
	now := upTo.Truncate(time.Second).UnixNano()
	for decided, want := range map[int64][2]int64{now - hour: {now - hour + second, now + 2*second}, now + 9*second: {now + 10*second, now + 10*second}} {
		r := &run{state: decide.Topic{Decided: decided}}
		if got := [2]int64{r.latest(counts, upTo), r.latest(asked, upTo)}; got != want {
			t.Errorf("evaluated up to %d: %d, want %d", decided, got, want)
		}
	}
}

// TestLate holds that alerts do not wait for their rules for longer where the clock was set back since.
func TestLate(t *testing.T) {
	t.Parallel()
	for back, want := range map[time.Duration]bool{0: false, maxRulesLate / 2: false, -maxRulesLate / 2: false, 2 * maxRulesLate: true, -2 * maxRulesLate: true} {
		r := run{state: decide.Topic{Rebuilt: time.Now().Add(back).UnixNano()}}
		if r.late() != want {
			t.Errorf("rebuilt %s from now: late is %t, want %t", back, !want, want)
		}
	}
	if r := (run{}); r.late() {
		t.Error("what was not rebuilt is late")
	}
}
