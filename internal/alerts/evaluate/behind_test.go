package evaluate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// routed waits until all is routed that a topic accepted.
func (g *rig) routed(topic string) {
	g.t.Helper()
	last, r := g.accepted(topic), g.reader()
	embeddedtest.Eventually(g.t, longestWait, func() error {
		upTo, err := r.RoutedUpTo(g.ctx, topic)
		if err == nil && upTo.Before(last) {
			err = fmt.Errorf("all is routed up to %s, the last was accepted at %s", upTo, last)
		}
		return err
	})
}

// TestGroupsOfALongerWindow holds that a run which is loaded counts the newest events of a rule, however many other groups lie in the longer window of
// another rule of its topic, and that an alert of it goes on.
func TestGroupsOfALongerWindow(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(`
groups:
- name: g
  topic: app
  rules:
  - {alert: Many, window: 1h, condition: ">= 1000000"}
  - {alert: Logins, where: 'type = "login_failed"', window: 2s, condition: ">= 5", keep_firing_for: 1h, by: user_id}
`)
	e := g.evaluator(nil)
	var users []string
	for i := range decide.MaxGroups + 1 {
		users = append(users, fmt.Sprint("other", i))
	}
	g.send("app", failures(1, users...)...)
	last := decide.Instant(g.accepted("app").UnixNano()) + int64(5*time.Second)
	g.rounds(e, func() error {
		r := e.run("app")
		if r == nil {
			return errors.New("there is no run")
		}
		if r.state.Decided < last {
			return fmt.Errorf("evaluated up to %s, want %s", time.Unix(0, r.state.Decided), time.Unix(0, last))
		}
		return r.save(g.ctx)
	})
	e.unload("app")
	g.send("app", failures(5, "u1")...)
	g.routed("app") // so that the first round reads all of it
	g.mu.Lock()
	g.faults = nil // that one user of the others is too many is said
	g.mu.Unlock()
	g.rounds(e, g.has("Logins u1 firing"))
	g.mu.Lock()
	defer g.mu.Unlock()
	if why := errors.Join(g.faults...); errors.Is(why, ErrLeftOut) {
		t.Error(why)
	}
}
