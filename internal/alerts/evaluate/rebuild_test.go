package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// bucket is the registry's.
func (g *rig) bucket() jetstream.KeyValue {
	g.t.Helper()
	kv, err := g.reg.JetStream().KeyValue(g.ctx, schemas.Bucket)
	if err != nil {
		g.t.Fatal(err)
	}
	return kv
}

// job is the entry of a topic's alerts as it is, and its key.
func (g *rig) job(topic string) (key string, entry []byte) {
	g.t.Helper()
	key = schemas.JobKey(schemas.JobAlerts, topic)
	e, err := g.bucket().Get(g.ctx, key)
	if err != nil {
		g.t.Fatal(err)
	}
	return key, e.Value()
}

// deleteRegistry deletes the bucket, and what a start makes again of its copies is all that is there.
func (g *rig) deleteRegistry() {
	g.t.Helper()
	if err := g.reg.JetStream().DeleteKeyValue(g.ctx, schemas.Bucket); err != nil {
		g.t.Fatal(err)
	}
	limits := schemas.StreamLimits{EventsBytes: 128 << 20, ShardsBytes: 128 << 20, RegistryBytes: 8 << 20, TimersBytes: 256 << 20, Replicas: 1}
	if _, err := registry.Setup(g.ctx, g.srv.NC(), limits); err != nil {
		g.t.Fatal(err)
	}
	if _, err := g.reg.Job(g.ctx, schemas.JobAlerts, "app"); !errors.Is(err, registry.ErrNotFound) {
		g.t.Fatalf("what is known of alerts came back by itself: %v", err)
	}
}

// deleteKey deletes what is known of a topic's alerts, as by hand.
func (g *rig) deleteKey(key string, _ []byte) {
	g.t.Helper()
	if err := g.bucket().Delete(g.ctx, key); err != nil {
		g.t.Fatal(err)
	}
}

// keys are the keys of the transitions so far, those that receivers are told of.
func (g *rig) keys() (keys []string) {
	g.t.Helper()
	page, err := g.History(g.ctx, alerts.Past{})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, a := range page.Alerts {
		keys = append(keys, a.Key)
	}
	slices.Sort(keys)
	return keys
}

// listed are the keys of the alerts that are pending or firing, by rule and value.
func (g *rig) listed() map[string]string {
	g.t.Helper()
	list, err := g.List(g.ctx)
	if err != nil {
		g.t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Alerts {
		a := &list.Alerts[i]
		out[a.Group+"/"+a.Rule+" "+a.Value] = a.Key
	}
	return out
}

// TestRulesComeBackLater holds that alerts wait for their rules where the registry was lost, and the groups are applied one after the other:
// none ends and fires again. Those whose group does not come back end.
func TestRulesComeBackLater(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	first := fmt.Sprintf(logins, "1h")
	second, third := strings.Replace(first, "name: logins", "name: second", 1), strings.Replace(first, "name: logins", "name: third", 1)
	for _, text := range []string{first, second, third} {
		g.apply(text)
	}
	e := g.evaluator(nil)
	g.rounds(e, func() error { return nil })
	g.send("app", failures(5, "u1")...)
	want := []string{"FailedLogins u1 firing", "FailedLogins u1 firing", "FailedLogins u1 firing"}
	g.rounds(e, g.has(want...))
	listed, told := g.listed(), g.told("ops")
	e.close()
	for _, name := range []string{"logins", "second", "third"} {
		if err := g.Remove(g.ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	g.deleteRegistry()
	e = g.evaluator(nil)
	same := func() error {
		if now := g.listed(); !maps.Equal(now, listed) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return fmt.Errorf("listed are %q, want %q; faults: %w", now, listed, errors.Join(g.faults...))
		}
		return nil
	}
	g.apply(first)
	g.rounds(e, same)
	e.close() // one that takes over has them wait too
	e = g.evaluator(nil)
	g.apply(second)
	g.send("app", failures(5, "u2")...)
	g.rounds(e, g.has(append([]string{"FailedLogins u2 firing", "FailedLogins u2 firing"}, want...)...))
	now := g.listed()
	for of, key := range listed {
		if now[of] != key {
			t.Errorf("%s has the key %q, and had %q", of, now[of], key)
		}
	}
	for _, id := range told {
		if !slices.Contains(g.told("ops"), id) {
			t.Errorf("the notification %s is gone", id)
		}
	}
	if n := len(g.told("ops")); n != len(told)+2 {
		t.Errorf("%d notifications, want %d", n, len(told)+2)
	}
	r := e.run("app")
	r.state.Rebuilt -= int64(maxRulesLate)
	if err := r.save(g.ctx); err != nil {
		t.Fatal(err)
	}
	g.rounds(e, g.has(append([]string{"FailedLogins u2 firing", "FailedLogins u2 firing", "FailedLogins u1 inactive the rule was removed or changed"}, want...)...))
}

// TestRegistryLost holds that no alert is forgotten, and none fires once more, where what the registry knows of alerts is lost or is an
// older copy: it is made of the events of alerts again. The window is long, so the counts of those that fired still meet the
// condition, and a rule with a field that is removed meanwhile ends its alerts.
func TestRegistryLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(g *rig, key string, older []byte)
		// stays: the process that evaluated goes on.
		stays bool
	}{
		"the bucket is deleted":         {lose: func(g *rig, _ string, _ []byte) { g.deleteRegistry() }},
		"the bucket is deleted, beside": {stays: true, lose: func(g *rig, _ string, _ []byte) { g.deleteRegistry() }},
		"the key is deleted":            {lose: (*rig).deleteKey},
		"the key is deleted, beside":    {stays: true, lose: (*rig).deleteKey},
		"an older copy": {lose: func(g *rig, key string, older []byte) {
			if _, err := g.bucket().Put(g.ctx, key, older); err != nil {
				g.t.Fatal(err)
			}
		}},
		"an older copy, beside": {stays: true, lose: func(g *rig, key string, older []byte) {
			if _, err := g.bucket().Put(g.ctx, key, older); err != nil {
				g.t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, schemas.NewTopic("app"))
			rules := strings.Replace(fmt.Sprintf(logins, "1h"), "  receivers:", `  - {alert: Some, where: 'type = "login_failed"', window: 1h, condition: ">= 3"}
  - {alert: Brief, where: 'type = "brief"', window: 2s, condition: ">= 1", by: user_id}
  - {alert: Long, where: 'type = "brief"', window: 2s, condition: ">= 1", keep_firing_for: 1h}
  - {alert: Later, where: 'type = "brief"', window: 1h, condition: ">= 1", for: 20h, by: user_id}
  receivers:`, 1)
			rules = strings.Replace(rules, "name: logins", "name: logins/all", 1)
			g.apply(rules)
			e := g.evaluator(nil)
			g.rounds(e, func() error { return nil })
			g.send("app", failures(5, "u1")...)
			want := []string{"FailedLogins u1 firing", "Some  firing"}
			g.rounds(e, g.has(want...))
			key, older := g.job("app")
			g.send("app", failures(5, "u2")...)
			g.send("app", schemas.Event{Type: "brief", UserID: "u3"})
			want = append(want, "FailedLogins u2 firing", "Brief u3 firing", "Brief u3 inactive", "Long  firing", "Later u3 pending")
			g.rounds(e, g.has(want...))
			before, listed := g.keys(), g.listed()
			c.lose(g, key, older)
			if !c.stays {
				e.close()
				e = g.evaluator(nil)
			}
			g.send("app", failures(5, "u4")...)
			want = append(want, "FailedLogins u4 firing")
			g.rounds(e, g.has(want...))
			list, err := g.List(g.ctx)
			if err != nil {
				t.Fatal(err)
			}
			var still []string
			for _, a := range list.Alerts {
				if a.Group != "logins/all" {
					t.Errorf("%s is of group %q", a.Rule, a.Group)
				}
				still = append(still, fmt.Sprintf("%s %s %s", a.Rule, a.Value, a.State))
			}
			slices.Sort(still)
			if all := []string{"FailedLogins u1 firing", "FailedLogins u2 firing", "FailedLogins u4 firing", "Later u3 pending", "Long  firing", "Some  firing"}; !slices.Equal(still, all) {
				t.Errorf("listed are %q, want %q", still, all)
			}
			now := g.listed()
			for of, key := range listed {
				if now[of] != key {
					t.Errorf("%s has the key %q, and had %q", of, now[of], key)
				}
			}
			for _, k := range before {
				if !slices.Contains(g.keys(), k) {
					t.Errorf("the transition %s is gone", k)
				}
			}
			// A rule that means something else ends its alerts, also those that were known by events alone.
			g.apply(strings.Replace(rules, `"login_failed"`+"\n    window: 1h\n    condition: \">= 5\"", `"login_failed"`+"\n    window: 1h\n    condition: \">= 500\"", 1))
			for _, u := range []string{"u1", "u2", "u4"} {
				want = append(want, "FailedLogins "+u+" inactive the rule was removed or changed")
			}
			g.rounds(e, g.has(want...))
			page, err := g.History(g.ctx, alerts.Past{})
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			for _, a := range page.Alerts {
				if a.Rule != "Later" {
					told = append(told, a.Key)
				}
			}
			slices.Sort(told)
			if got := g.told("ops"); !slices.Equal(got, told) {
				t.Errorf("the receiver is told of %q, the history has %q", got, told)
			}
		})
	}
}

// TestRegistryLostInDelivery holds that an alert fires once, and its receiver is told under one key, where the registry is lost with a
// transition that is committed, or whose event is stored and its timer is not.
func TestRegistryLostInDelivery(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stored, again bool }{"committed": {}, "the event is stored": {stored: true}, "and the next process dies": {stored: true, again: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, schemas.NewTopic("app"))
			g.apply(fmt.Sprintf(logins, "1h"))
			e := g.evaluator(func(at string) {
				if at == "committed" {
					panic(killed{})
				}
			})
			g.rounds(e, func() error { return nil })
			g.send("app", failures(5, "u1")...)
			dies(g, e)
			if c.stored {
				job, err := g.reg.Job(g.ctx, schemas.JobAlerts, "app")
				if err != nil {
					t.Fatal(err)
				}
				var state decide.Topic
				if err := json.Unmarshal(job.State, &state); err != nil || len(state.Outbox) != 1 {
					t.Fatalf("%s, %v", job.State, err)
				}
				if err := g.evaluator(nil).publish(g.ctx, &state.Outbox[0]); err != nil {
					t.Fatal(err)
				}
			}
			g.deleteRegistry()
			if c.again { // what is adopted is saved with whom it has to tell
				dies(g, g.evaluator(func(at string) {
					if at == "adopted" {
						panic(killed{})
					}
				}))
			}
			g.rounds(g.evaluator(nil), func() error {
				if err := g.has("FailedLogins u1 firing")(); err != nil {
					return err
				}
				if told := g.told("ops"); !slices.Equal(told, g.keys()) {
					return fmt.Errorf("the receiver is told of %q, the history has %q", told, g.keys())
				}
				return nil
			})
		})
	}
}

// TestBeginsWithoutClickHouse holds that a process which takes over while no alert is pending or firing does without ClickHouse: that the
// job is no older copy is seen in SHARDS.
func TestBeginsWithoutClickHouse(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(fmt.Sprintf(logins, "2s"))
	e := g.evaluator(nil)
	g.rounds(e, func() error { return nil })
	g.send("app", failures(5, "u1")...)
	g.rounds(e, g.has("FailedLogins u1 firing", "FailedLogins u1 inactive"))
	job := func() (s decide.Topic) {
		_, text := g.job("app")
		var j registry.Job
		if err := errors.Join(json.Unmarshal(text, &j), json.Unmarshal(j.State, &s)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	ended := e.runs["app"].state.Decided
	g.rounds(e, func() error { // what was made lies before what is saved
		if s := job(); s.Decided < ended+int64(decide.Step) || len(s.Outbox) > 0 {
			return fmt.Errorf("saved is %+v", s)
		}
		return nil
	})
	e.close()
	cable, near := embeddedtest.NewCable(t, g.srv.HTTPDSN())
	db, err := tables.Open(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	next := g.evaluatorBy(db, nil)
	cable.Freeze(true)
	g.send("app", failures(5, "u2")...)
	g.rounds(next, func() error {
		if all := g.history(); !slices.Contains(all, "FailedLogins u2 firing") {
			return fmt.Errorf("the transitions are %q", all)
		}
		return nil
	})
	if all := g.history(); strings.Count(strings.Join(all, "\n"), "u1 firing") != 1 {
		t.Errorf("u1 fired more than once: %q", all)
	}
}
