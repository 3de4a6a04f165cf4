package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/schemas"
)

const logins = `
groups:
- name: logins
  topic: app
  rules:
  - alert: FailedLogins
    where: type = "login_failed"
    window: %s
    condition: ">= 5"
    by: user_id
    labels: {severity: page}
    annotations: {summary: "{{ $labels.user_id }} failed {{ $value }} times"}
  receivers:
  - {name: ops, url: "http://127.0.0.1:9/"}
`

// killed is what a crash point panics with.
type killed struct{}

// dies makes rounds of an evaluator until it dies at its crash point.
func dies(g *rig, e *Evaluator) {
	defer func() {
		v := recover()
		if p, ok := v.(*fanout.Panic); ok {
			v = p.Value
		}
		if v != nil && v != any(killed{}) {
			panic(v)
		}
	}()
	g.rounds(e, func() error { return errors.New("it has not died") })
}

// TestFiresOnce holds that an alert fires once for each user and ends once, whatever point its evaluator is killed at.
func TestFiresOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "committed", "delivered"} {
		t.Run("killed "+point, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, schemas.NewTopic("app"))
			g.apply(fmt.Sprintf(logins, "4s"))
			first := g.evaluator(func(at string) {
				if at == point {
					panic(killed{})
				}
			})
			if err := first.Round(g.ctx); err != nil { // the rules are evaluated from here on
				t.Fatal(err)
			}
			g.send("app", failures(5, "u1", "u2")...)
			g.send("app", failures(4, "u3")...)
			next := first
			if point != "" {
				dies(g, first)
				next = g.evaluator(nil)
			}
			fired := []string{"FailedLogins u1 firing", "FailedLogins u2 firing"}
			g.rounds(next, g.has(append(fired, "FailedLogins u1 inactive", "FailedLogins u2 inactive")...))
			page, err := g.History(g.ctx, alerts.Past{})
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, a := range page.Alerts {
				keys = append(keys, a.Key)
				if a.State == "firing" && (a.Annotations["summary"] != a.Value+" failed 5 times" || a.Labels["severity"] != "page" || a.Labels["user_id"] != a.Value) {
					t.Errorf("it says %v %v", a.Annotations, a.Labels)
				}
			}
			slices.Sort(keys)
			if told := g.told("ops"); !slices.Equal(told, keys) {
				t.Errorf("the receiver is told of %q, the history has %q", told, keys)
			}
		})
	}
}

// TestTwoEvaluators holds that an alert fires once where a lease moved and two processes evaluate.
func TestTwoEvaluators(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(fmt.Sprintf(logins, "4s"))
	one, other := g.evaluator(nil), g.evaluator(nil)
	if err := errors.Join(one.Round(g.ctx), other.Round(g.ctx)); err != nil {
		t.Fatal(err)
	}
	g.send("app", failures(6, "u1", "u2", "u3")...)
	want := g.has("FailedLogins u1 firing", "FailedLogins u2 firing", "FailedLogins u3 firing", "FailedLogins u1 inactive", "FailedLogins u2 inactive", "FailedLogins u3 inactive")
	g.rounds(one, func() error {
		if err := other.Round(g.ctx); err != nil {
			return err
		}
		return want()
	})
	if told := g.told("ops"); len(told) != 6 {
		t.Errorf("the receiver is told %d times: %q", len(told), told)
	}
}

// TestRouterAway holds that no time passes for rules while an event waits for its router: nothing falls silent, and what waited counts.
func TestRouterAway(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.send("app", schemas.Event{Service: "db"})
	g.apply(`
groups:
- name: g
  topic: app
  rules:
  - {alert: Quiet, silence: 3s}
`)
	e := g.evaluator(nil)
	g.rounds(e, func() error { return nil })
	g.stopRouter()
	g.send("app", schemas.Event{Service: "db"})
	sent := time.Now()
	g.rounds(e, func() error { // the rule's time would have come
		if left := 4*time.Second - time.Since(sent); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
	if upTo := e.runs["app"].state.Decided; upTo >= sent.Add(3*time.Second).UnixNano() {
		t.Errorf("evaluated up to %s, which is after %s, since when an event waits", time.Unix(0, upTo), sent)
	}
	g.router()
	g.rounds(e, func() error {
		if upTo := e.runs["app"].state.Decided; upTo < sent.Add(3*time.Second).UnixNano() {
			return fmt.Errorf("evaluated up to %s", time.Unix(0, upTo))
		}
		if all := g.history(); !slices.Contains(all, "Quiet  firing") {
			return fmt.Errorf("it has not fallen silent: %q", all)
		}
		return nil
	})
}

// TestTry holds that rules are tried over what came before, by filters that the frame decides and by those that ClickHouse alone does.
func TestTry(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.send("app", failures(3, "u1")...)
	e := g.evaluator(nil)
	var got []string
	embeddedtest.Eventually(t, longestWait, func() error {
		made, _, err := e.try(g.ctx, parsed(t, `
groups:
- name: g
  topic: app
  rules:
  - {alert: Many, where: 'type = "login_failed"', window: 2s, condition: ">= 3", by: user_id}
  - {alert: All, where: 'message matches "^n"', window: 2s, condition: ">= 3"}
`), time.Now().Add(-time.Hour))
		if err != nil {
			return err
		}
		got = nil
		for _, n := range made {
			got = append(got, fmt.Sprintf("%s %s %s", n.Rule, n.Value, n.To))
		}
		slices.Sort(got)
		if want := []string{"All  firing", "All  inactive", "Many u1 firing", "Many u1 inactive"}; !slices.Equal(got, want) {
			return fmt.Errorf("it makes %q, want %q", got, want)
		}
		return nil
	})
	if groups, err := g.Groups(g.ctx); err != nil || len(groups) > 0 {
		t.Errorf("declared are %v, %v", groups, err)
	}
}

func parsed(t *testing.T, text string) []alerts.Group {
	t.Helper()
	groups, err := alerts.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

func TestSilence(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(`
groups:
- name: quiet
  topic: app
  rules:
  - {alert: Quiet, silence: 3s, where: 'service = "db"'}
`)
	g.send("app", schemas.Event{Service: "db"})
	e := g.evaluator(nil)
	// It may have been silent before the first event too.
	ends := func() (n int) {
		for _, a := range g.history() {
			if a == "Quiet  inactive" {
				n++
			}
		}
		return n
	}
	g.rounds(e, func() error {
		s, err := g.List(g.ctx)
		if err == nil && len(s.Alerts) != 1 {
			err = fmt.Errorf("listed are %+v", s.Alerts)
		}
		return err
	})
	before := ends()
	g.send("app", schemas.Event{Service: "web"}, schemas.Event{Service: "db"})
	g.rounds(e, func() error {
		if ends() <= before {
			return fmt.Errorf("it has not ended: %q", g.history())
		}
		return nil
	})
}

// TestRuleChanged holds that alerts of a rule which is changed or removed while they fire end, and say why.
func TestRuleChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(g *rig){
		"removed":           func(g *rig) { _ = g.Remove(g.ctx, "logins") },
		"means another":     func(g *rig) { g.apply(strings.Replace(fmt.Sprintf(logins, "1h"), ">= 5", ">= 500", 1)) },
		"another by itself": func(g *rig) { g.apply(strings.Replace(fmt.Sprintf(logins, "1h"), "FailedLogins", "Other", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, schemas.NewTopic("app"))
			g.apply(fmt.Sprintf(logins, "1h"))
			e := g.evaluator(nil)
			g.send("app", failures(5, "u1")...)
			g.rounds(e, g.has("FailedLogins u1 firing"))
			change(g)
			want := []string{"FailedLogins u1 firing", "FailedLogins u1 inactive the rule was removed or changed"}
			if name == "another by itself" {
				want = append(want, "Other u1 firing")
			}
			g.rounds(e, g.has(want...))
			if told := g.told("ops"); len(told) != len(want) {
				t.Errorf("the receiver is told %d times, want %d", len(told), len(want))
			}
			s, err := g.List(g.ctx)
			if err != nil || len(s.Alerts) != len(want)-2 {
				t.Errorf("listed are %+v, %v", s, err)
			}
		})
	}
	t.Run("only its labels", func(t *testing.T) {
		t.Parallel()
		g := newRig(t, schemas.NewTopic("app"))
		g.apply(fmt.Sprintf(logins, "1h"))
		e := g.evaluator(nil)
		g.send("app", failures(5, "u1")...)
		g.rounds(e, g.has("FailedLogins u1 firing"))
		g.apply(strings.Replace(fmt.Sprintf(logins, "1h"), "page", "mail", 1))
		for range 3 {
			g.rounds(e, func() error { return nil })
		}
		if err := g.has("FailedLogins u1 firing")(); err != nil {
			t.Error(err)
		}
	})
}

// TestRefusedRules holds what is asked of servers before rules are declared.
func TestRefusedRules(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	for name, c := range map[string]struct{ rule, says string }{
		"unknown topic":   {`{alert: A, topic: none, window: 1m, condition: "> 1"}`, "unknown topic"},
		"bad filter":      {`{alert: A, topic: app, window: 1m, condition: "> 1", where: "type ="}`, "where"},
		"unknown field":   {`{alert: A, topic: app, window: 1m, condition: "> 1", by: nothing}`, `no field of text "nothing"`},
		"a field of time": {`{alert: A, topic: app, window: 1m, condition: "> 1", by: ts}`, `no field of text "ts"`},
	} {
		t.Run(name, func(t *testing.T) {
			groups := parsed(t, "groups: [{name: g, rules: ["+c.rule+"]}]")
			err := g.Apply(g.ctx, groups)
			if err == nil || name != "bad filter" && !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, want %q", err, c.says)
			}
		})
	}
	if groups, err := g.Groups(g.ctx); err != nil || len(groups) != 0 {
		t.Errorf("declared are %v, %v", groups, err)
	}
}

// TestAppliedAtOnce holds that the bounds of all groups hold for those that are applied at one moment.
func TestAppliedAtOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	group := func(i int) alerts.Group {
		return alerts.Group{Name: fmt.Sprint("g", i), Rules: []alerts.Rule{{Alert: "A", Topic: "app", Silence: alerts.Span(time.Hour)}}}
	}
	var most []alerts.Group
	for i := range alerts.MaxGroups - 1 {
		most = append(most, group(i))
	}
	if err := g.Apply(g.ctx, most); err != nil {
		t.Fatal(err)
	}
	const beside = 6
	said := make(chan error, beside)
	for i := range beside {
		go func() { said <- g.Apply(g.ctx, []alerts.Group{group(alerts.MaxGroups + i)}) }()
	}
	took := 0
	for range beside {
		switch err := <-said; {
		case err == nil:
			took++
		case !errors.Is(err, alerts.ErrRule) || !strings.Contains(err.Error(), "groups of rules; the limit is"):
			t.Error(err)
		}
	}
	if groups, err := g.Groups(g.ctx); err != nil || len(groups) != alerts.MaxGroups || took != 1 {
		t.Errorf("%d were taken, and %d are declared, %v", took, len(groups), err)
	}
}

// TestErased holds that an alert whose event was erased is forgotten: no receiver is told of that person again.
func TestErased(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(fmt.Sprintf(logins, "1h"))
	g.send("app", failures(5, "u1")...)
	g.rounds(g.evaluator(nil), g.has("FailedLogins u1 firing"))
	for _, topic := range []string{"app", schemas.TopicAlerts} {
		g.erase(topic, "u1")
	}
	e := g.evaluator(nil)
	embeddedtest.Eventually(t, longestWait, func() error {
		if err := e.Round(g.ctx); err != nil {
			return err
		}
		if r := e.runs["app"]; r == nil || len(r.state.Alerts) > 0 {
			return errors.New("it is not forgotten")
		}
		return nil
	})
	if err := g.has()(); err != nil {
		t.Error(err)
	}
}

// TestClockSetBack holds that rules go on where the clock of NATS was ahead: what was evaluated up to lies in the future then.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(fmt.Sprintf(logins, "5m"))
	e := g.evaluator(nil)
	g.rounds(e, func() error { return nil })
	e.runs["app"].state.Decided += int64(2 * time.Hour)
	if err := e.runs["app"].save(g.ctx); err != nil {
		t.Fatal(err)
	}
	g.send("app", failures(5, "u1")...)
	g.rounds(e, g.has("FailedLogins u1 firing"))
	if d := time.Until(time.Unix(0, e.runs["app"].state.Decided)); d > time.Minute {
		t.Errorf("evaluated up to %s ahead", d)
	}
}

// TestEventThatCannotBeStored holds that a transition whose event is refused for what it is holds up no other: its receivers are
// told, and the rules go on.
func TestEventThatCannotBeStored(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(fmt.Sprintf(logins, "1h"))
	e := g.evaluator(nil)
	g.rounds(e, func() error { return nil })
	n := decide.Notice{Key: newKey(), Topic: "app", Group: "logins", Rule: "FailedLogins", To: decide.Firing, At: time.Now().UnixNano(), Labels: map[string]string{}, Calls: []decide.Call{{Receiver: "ops", URL: "http://127.0.0.1:9/"}}}
	for i := range schemas.MaxAttrs + 1 {
		n.Labels[fmt.Sprint("x", i)] = "y"
	}
	r := e.runs["app"]
	r.state.Outbox = []decide.Notice{n}
	if err := r.save(g.ctx); err != nil {
		t.Fatal(err)
	}
	g.send("app", failures(5, "u1")...)
	g.rounds(e, g.has("FailedLogins u1 firing"))
	if told := g.told("ops"); !slices.Contains(told, n.Key) {
		t.Errorf("the receiver is told of %q, and not of %s", told, n.Key)
	}
}

// TestAlertBytes holds that what an alert is counted with is no less than it has, whatever its names.
func TestAlertBytes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a", strings.Repeat("<", alerts.MaxNameBytes), strings.Repeat("\x01", alerts.MaxNameBytes), strings.Repeat("é", alerts.MaxNameBytes/2)} {
		a := decide.Named{
			Alert: decide.Alert{State: decide.Inactive, Since: math.MinInt64, Met: math.MinInt64, At: math.MinInt64},
			Group: name, Rule: name, Sum: (&alerts.Rule{}).Sum(), Key: newKey(),
		}
		text, err := json.Marshal(&a)
		if counted := named(&decide.Notice{Group: name, Rule: name}); err != nil || len(text)+1 > counted {
			t.Errorf("%d bytes are counted as %d: %s, %v", len(text), counted, text, err)
		}
	}
	if most := maxAlertBytes + maxNoticeBytes; most > 1<<20-64<<10 {
		t.Errorf("alerts and outbox may have %d bytes, a message of NATS 1 MiB", most)
	}
}

// TestOutboxGoesOn holds that a round which runs out of time within an outbox leaves what it did not deliver, and no more: rounds of slow servers
// would otherwise deliver its beginning again and again.
func TestOutboxGoesOn(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(fmt.Sprintf(logins, "4s"))
	e := g.evaluator(nil)
	g.rounds(e, func() error { return nil })
	var keys []string
	var outbox []decide.Notice
	for range 3 {
		n := decide.Notice{Key: newKey(), Topic: "app", Group: "logins", Rule: "FailedLogins", To: decide.Firing, At: time.Now().UnixNano(), Calls: []decide.Call{{Receiver: "ops", URL: "http://127.0.0.1:9/"}}}
		keys, outbox = append(keys, n.Key), append(outbox, n)
	}
	r := e.runs["app"]
	r.state.Outbox = outbox
	if err := r.save(g.ctx); err != nil {
		t.Fatal(err)
	}
	var delivered []string
	for i := range keys {
		ctx, cancel := context.WithCancel(g.ctx)
		e.cfg.Hooks.Changed = func(n *decide.Notice) { // the time is over after each
			delivered = append(delivered, n.Key)
			cancel()
		}
		if err := e.Round(ctx); ctx.Err() == nil {
			t.Fatalf("round %d delivered nothing: %v", i, err)
		}
	}
	if !slices.Equal(delivered, keys) {
		t.Errorf("delivered %q, want %q", delivered, keys)
	}
	for _, key := range keys {
		if told := g.told("ops"); !slices.Contains(told, key) {
			t.Errorf("the receiver is told of %q, and not of %s", told, key)
		}
	}
}
