package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// accepted is when the last event of a topic was accepted.
func (g *rig) accepted(topic string) time.Time {
	g.t.Helper()
	js, err := g.srv.NC().JetStream()
	if err != nil {
		g.t.Fatal(err)
	}
	msg, err := js.GetLastMsg(schemas.StreamEvents, "events."+topic+".>")
	if err != nil {
		g.t.Fatal(err)
	}
	return msg.Time
}

// faulty says what went wrong, and what rules were not evaluated for.
func (g *rig) faulty(what string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Errorf("%s; faults: %w", what, errors.Join(g.faults...))
}

// TestClickHouseHangs holds that rules which ClickHouse must be asked for hold up no rules of other topics while it hangs: a silence and a
// count fire in time by the rule's own clock, each round ends however many topics wait, and what waited fires once it answers.
func TestClickHouseHangs(t *testing.T) {
	t.Parallel()
	const unsure = 2*maxAtOnce + 1
	var topics []schemas.Topic
	var rules strings.Builder
	rules.WriteString("groups:\n- name: g\n  rules:\n")
	var want []string
	for i := range unsure { // they come before the others in a round
		topics = append(topics, schemas.NewTopic(fmt.Sprint("a", i)))
		fmt.Fprintf(&rules, "  - {alert: Unsure%d, topic: a%d, where: 'message matches \"^n\"', window: 1h, condition: '>= 1'}\n", i, i)
		want = append(want, fmt.Sprintf("Unsure%d  firing", i))
	}
	rules.WriteString("  - {alert: Quiet, topic: z, silence: 3s}\n  - {alert: Logins, topic: z, where: 'type = \"login_failed\"', window: 1h, condition: '>= 2', by: user_id}\n")
	g := newRig(t, append(topics, schemas.NewTopic("z"))...)
	g.apply(rules.String())
	cable, near := embeddedtest.NewCable(t, g.srv.HTTPDSN())
	db, err := tables.Open(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	e := g.evaluatorBy(db, nil)
	e.roundTime = 2 * longestWait // a round that waits for one of its topics does not end
	g.rounds(e, func() error { return nil })
	cable.Freeze(true)
	for i := range unsure {
		g.send(fmt.Sprint("a", i), failures(1, "u1")...)
	}
	g.send("z", failures(2, "u1")...)
	last := g.accepted("z")
	var quiet time.Time
	g.rounds(e, func() error {
		page, err := g.History(g.ctx, alerts.Past{})
		if err != nil {
			return err
		}
		counted := false
		for _, a := range page.Alerts { // it may have been silent before the events too
			switch {
			case a.Rule == "Quiet" && a.State == decide.Firing && a.At.After(last):
				quiet = a.At
			case a.Rule == "Logins" && a.Value == "u1" && a.State == decide.Firing:
				counted = true
			case strings.HasPrefix(a.Rule, "Unsure"):
				t.Errorf("%s is %s, and ClickHouse was not asked", a.Rule, a.State)
			}
		}
		if quiet.IsZero() || !counted {
			return fmt.Errorf("the transitions are %q", g.history())
		}
		return nil
	})
	if late := quiet.Sub(last.Add(3 * time.Second)); late < 0 || late > 2*decide.Step {
		t.Errorf("silence of 3s after %s fired at %s, %s later than it should", last, quiet, late)
	}
	g.mu.Lock()
	if why := errors.Join(g.faults...); why == nil || !strings.Contains(why.Error(), "ClickHouse at") || !strings.Contains(why.Error(), "does not answer") {
		t.Errorf("the faults are %v", why)
	}
	g.mu.Unlock()
	cable.Freeze(false)
	g.rounds(e, func() error {
		all := g.history()
		for _, w := range want {
			if !slices.Contains(all, w) {
				return fmt.Errorf("%q is missing in %q", w, all)
			}
		}
		return nil
	})
}

// TestFarBehind holds that a round which has no time for all instants that are due ends well, saves how far it came, and that the next goes on from
// there: a topic that is a day behind would never be evaluated else.
func TestFarBehind(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(fmt.Sprintf(logins, "1h"))
	e := g.evaluator(nil)
	e.readTime, e.decideTime = 0, 0 // for one frame and one instant
	const rounds = 3
	embeddedtest.Eventually(t, longestWait, func() error { // a round that fails, as where a server is slow, ends its run: then from the beginning
		if err := e.Round(g.ctx); err != nil {
			return err
		}
		r := e.run("app")
		if r == nil {
			return g.faulty("no run is loaded")
		}
		behind := r.state.Decided - 5*int64(decide.Step)
		r.state.Decided = behind
		for i := range rounds {
			r.saved = time.Time{}
			if err := e.Round(g.ctx); err != nil {
				return err
			}
			if e.run("app") != r {
				return g.faulty(fmt.Sprintf("the run ended in round %d", i))
			}
			if want := behind + int64(i+1)*int64(decide.Step); r.state.Decided != want {
				t.Errorf("after round %d it is evaluated up to %s, want %s", i, time.Unix(0, r.state.Decided), time.Unix(0, want))
			}
			job, err := g.reg.Job(g.ctx, schemas.JobAlerts, "app")
			if err != nil {
				return err
			}
			var saved decide.Topic
			if err := json.Unmarshal(job.State, &saved); err != nil || saved.Decided != r.state.Decided {
				t.Errorf("after round %d %s is saved, want %s: %v", i, time.Unix(0, saved.Decided), time.Unix(0, r.state.Decided), err)
			}
		}
		return nil
	})
	e.readTime, e.decideTime = readTime, decideTime
	g.send("app", failures(5, "u1")...)
	g.rounds(e, g.has("FailedLogins u1 firing"))
}

// TestFramesTakeLong holds that a round which has no time for all frames that are there, as where ClickHouse must be asked about each, ends well, and that the
// next reads on: no instant is evaluated before all are read, and none of it is read twice.
func TestFramesTakeLong(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(`groups: [{name: g, topic: app, rules: [{alert: Unsure, where: 'message matches "^n"', window: 1h, condition: ">= 3"}]}]`)
	e := g.evaluator(nil)
	g.rounds(e, func() error {
		if e.run("app") == nil {
			return g.faulty("no run is loaded")
		}
		return nil
	})
	e.unload("app")
	const frames = 3
	for range frames {
		g.send("app", failures(1, "u1")...)
	}
	g.routed("app")
	e.readTime = 0 // for one frame
	embeddedtest.Eventually(t, longestWait, func() error {
		e.unload("app")
		if err := e.Round(g.ctx); err != nil {
			return err
		}
		r := e.run("app")
		if r == nil {
			return g.faulty("no run is loaded")
		}
		read, decided := 1, r.state.Decided
		for read < frames {
			at := r.at
			if err := e.Round(g.ctx); err != nil {
				return err
			}
			if e.run("app") != r {
				return g.faulty(fmt.Sprintf("the run ended after %d frames", read))
			}
			if r.at == at || r.state.Decided != decided {
				t.Fatalf("after %d of %d frames a round read from %d to %d and evaluated from %s to %s", read, frames, at, r.at, time.Unix(0, decided), time.Unix(0, r.state.Decided))
			}
			read++
		}
		return nil
	})
	e.readTime = readTime
	g.rounds(e, g.has("Unsure  firing"))
}
