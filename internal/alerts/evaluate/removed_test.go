package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// gone is nil once the registry knows nothing of a topic's alerts.
func (g *rig) gone(topic string) error {
	if _, err := g.reg.Job(g.ctx, schemas.JobAlerts, topic); !errors.Is(err, registry.ErrNotFound) {
		return fmt.Errorf("what is known of its alerts is there: %v", err) //nolint:errorlint // nil where it is there
	}
	return nil
}

// TestRulesRemovedAndAppliedAgain holds that what is known of a topic goes with its last rules, once their alerts have ended and the history says so, and
// that rules which are applied to it again do not fire for what came while it had none.
func TestRulesRemovedAndAppliedAgain(t *testing.T) {
	t.Parallel()
	for name, fired := range map[string]bool{"an alert fired": true, "none did": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, schemas.NewTopic("app"))
			rules := strings.Replace(fmt.Sprintf(logins, "1s"), "    by: user_id", "    keep_firing_for: 1h\n    by: user_id", 1)
			g.apply(rules)
			e := g.evaluator(nil)
			g.rounds(e, func() error { return nil })
			var want []string
			if fired {
				g.send("app", failures(5, "u1")...)
				g.rounds(e, g.has("FailedLogins u1 firing"))
				want = append(want, "FailedLogins u1 firing", "FailedLogins u1 inactive the rule was removed or changed")
			}
			if err := g.Remove(g.ctx, "logins"); err != nil {
				t.Fatal(err)
			}
			if ending, err := alerts.Ending(g.ctx, g.reg, "app"); err != nil || ending != fired {
				t.Errorf("its alerts are being ended: %t, %v", ending, err)
			}
			g.rounds(e, func() error { return errors.Join(g.gone("app"), g.has(want...)()) })
			if ending, err := alerts.Ending(g.ctx, g.reg, "app"); err != nil || ending {
				t.Errorf("its alerts are being ended after they have: %t, %v", ending, err)
			}
			if run := e.run("app"); run != nil {
				t.Errorf("its run goes on: %+v", run.state)
			}
			g.send("app", failures(5, "u2")...)
			sent := time.Now()
			g.rounds(e, func() error { // its window is over before the rules are there again
				upTo, err := g.reader().RoutedUpTo(g.ctx, "app")
				if err == nil && upTo.Sub(sent) < 3*time.Second {
					err = fmt.Errorf("all is routed up to %s", upTo)
				}
				return err
			})
			g.apply(rules)
			next := g.evaluator(nil)
			g.rounds(next, func() error { return nil })
			g.send("app", failures(5, "u3")...)
			want = append(want, "FailedLogins u3 firing")
			g.rounds(next, g.has(want...))
			if told := g.told("ops"); len(told) != len(want) {
				t.Errorf("the receiver is told %d times, want %d", len(told), len(want))
			}
		})
	}
}

// TestUnreadable holds that what is known of a topic and cannot be read goes with its last rules, as its fault says, and that alerts go on once the rules
// are applied again.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	rules := fmt.Sprintf(logins, "1h")
	g.apply(rules)
	e := g.evaluator(nil)
	g.send("app", failures(5, "u1")...)
	fired := g.has("FailedLogins u1 firing")
	g.rounds(e, fired)
	e.unload("app")
	key, entry := g.job("app")
	var job map[string]any
	err := json.Unmarshal(entry, &job)
	if err == nil {
		job["state"] = "of another version"
		entry, err = json.Marshal(job)
	}
	if err == nil {
		_, err = g.bucket().Put(g.ctx, key, entry)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.rounds(e, func() error {
		if why := g.faulty("the faults"); !strings.Contains(why.Error(), "`almanac alerts rm` its groups") {
			return why
		}
		return nil
	})
	if err := g.Remove(g.ctx, "logins"); err != nil {
		t.Fatal(err)
	}
	g.rounds(e, func() error { return g.gone("app") })
	g.apply(rules)
	g.rounds(e, func() error {
		if len(g.listed()) != 1 {
			return g.faulty(fmt.Sprintf("listed are %q", g.listed()))
		}
		return fired()
	})
}

// TestRecordedIsForgotten holds that what a rule recorded last is not kept once the rule is gone, where its topic could not be loaded meanwhile.
func TestRecordedIsForgotten(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
	const one = "groups: [{name: g, interval: 1s, topic: metrics, rules: [{record: a, expr: vector(1)}%s]}]"
	g.apply(fmt.Sprintf(one, ", {record: b, expr: vector(2)}"))
	e := g.evaluator(nil)
	g.rounds(e, func() error {
		r := e.run("metrics")
		if r == nil || len(r.rules) != 2 || r.rules[0].recorded == nil || r.rules[1].recorded == nil {
			return fmt.Errorf("not both have recorded: %+v", r)
		}
		return nil
	})
	e.unload("metrics")
	kept := func() []string { return slices.Sorted(maps.Keys(e.last["metrics"])) }
	if len(kept()) != 2 {
		t.Fatalf("it keeps %q", kept())
	}
	e.roundTime = time.Nanosecond // no load comes to its end
	g.apply(fmt.Sprintf(one, ""))
	g.rounds(e, func() error { return nil })
	if want := []string{(&alerts.Rule{Record: "a", Expr: "vector(1)", Topic: "metrics"}).AskedKey("g")}; !slices.Equal(kept(), want) {
		t.Errorf("it keeps %q, want %q alone", kept(), want)
	}
	if err := g.Remove(g.ctx, "g"); err != nil {
		t.Fatal(err)
	}
	if err := e.Round(g.ctx); err != nil || len(e.last) > 0 {
		t.Errorf("it keeps %v, %v", e.last, err)
	}
}

// TestOlderRules holds that an alert whose rule a restored registry does not have, nor that it fires, waits for the rule: it neither ends nor
// fires a second time.
func TestOlderRules(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	first := fmt.Sprintf(logins, "1h")
	second := strings.Replace(first, "name: logins", "name: second", 1)
	g.apply(first)
	e := g.evaluator(nil)
	g.send("app", failures(5, "u1")...)
	want := []string{"FailedLogins u1 firing"}
	g.rounds(e, g.has(want...))
	key, older := g.job("app")
	g.apply(second)
	g.send("app", failures(5, "u2")...)
	want = append(want, "FailedLogins u1 firing", "FailedLogins u2 firing", "FailedLogins u2 firing")
	g.rounds(e, g.has(want...))
	e.close()
	listed, told := g.listed(), g.told("ops")
	for key, entry := range map[string][]byte{key: older, schemas.AlertKey("second"): nil} { // as before the group was applied
		err := error(nil)
		if entry == nil {
			err = g.bucket().Delete(g.ctx, key)
		} else {
			_, err = g.bucket().Put(g.ctx, key, entry)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	same := func() error {
		if now := g.listed(); !maps.Equal(now, listed) {
			return fmt.Errorf("listed are %q, want %q", now, listed)
		}
		return g.has(want...)()
	}
	next := g.evaluator(nil)
	g.rounds(next, same)
	g.send("app", failures(5, "u3")...) // all of this was evaluated
	want = append(want, "FailedLogins u3 firing")
	g.rounds(next, g.has(want...))
	g.apply(second)
	want = append(want, "FailedLogins u3 firing")
	g.rounds(next, g.has(want...))
	for of, key := range listed {
		if now := g.listed(); now[of] != key {
			t.Errorf("%s has the key %q, and had %q", of, now[of], key)
		}
	}
	if n := len(g.told("ops")); n != len(told)+2 {
		t.Errorf("%d notifications, want %d", n, len(told)+2)
	}
}

// TestSilenceEnds holds that a silence that ended may begin again under another key, that receivers hear of each end and beginning, and that the silence
// of a rule that is removed ends.
func TestSilenceEnds(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(`
groups:
- name: quiet
  topic: app
  rules:
  - {alert: Quiet, silence: 3s}
  receivers:
  - {name: ops, url: "http://127.0.0.1:9/"}
`)
	g.send("app", schemas.Event{Service: "db"})
	e := g.evaluator(nil)
	firing := func() error {
		page, err := g.History(g.ctx, alerts.Past{})
		if err == nil && (len(page.Alerts) == 0 || page.Alerts[0].State != decide.Firing) {
			err = fmt.Errorf("the history is %+v", page.Alerts)
		}
		return err
	}
	for range 2 {
		g.rounds(e, firing)
		before := len(g.history())
		g.send("app", schemas.Event{Service: "db"})
		g.rounds(e, func() error {
			if all := g.history(); len(all) < before+2 { // it ended, and began again
				return fmt.Errorf("the transitions are %q", all)
			}
			return firing()
		})
	}
	if err := g.Remove(g.ctx, "quiet"); err != nil {
		t.Fatal(err)
	}
	g.rounds(e, func() error {
		if all := g.history(); !slices.Contains(all, "Quiet  inactive the rule was removed or changed") {
			return fmt.Errorf("the transitions are %q", all)
		}
		return g.gone("app")
	})
	keys := g.keys()
	if told := g.told("ops"); len(slices.Compact(slices.Clone(keys))) != len(keys) || !slices.Equal(told, keys) {
		t.Errorf("the receiver is told of %q, the history has %q", told, keys)
	}
}
