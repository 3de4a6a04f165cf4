package evaluate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// TestRefusedForGood holds which refusals leave a receiver out: those that another try meets again.
func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"none":            {nil, false},
		"no answer":       {context.DeadlineExceeded, false},
		"a full group":    {&timer.Refusal{Code: timer.CodeGroupFull}, false},
		"past by then":    {&timer.Refusal{Code: timer.CodeDuePast}, false},
		"exists already":  {&timer.Refusal{Code: timer.CodeExists}, true},
		"another refusal": {fmt.Errorf("creating: %w", &timer.Refusal{Code: timer.CodeLateness}), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := forGood(c.err); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestSlowReceivers holds that each receiver of a transition is told, also where telling those before takes longer than a due time may
// have passed by.
func TestSlowReceivers(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	var receivers strings.Builder
	names := []string{"first", "second", "third"}
	for _, name := range names {
		fmt.Fprintf(&receivers, "  - {name: %s, url: \"http://127.0.0.1:9/\"}\n", name)
	}
	g.apply("groups:\n- name: g\n  topic: app\n  rules:\n  - {alert: Many, window: 1h, condition: '>= 1'}\n  receivers:\n" + receivers.String())
	e := g.evaluator(nil)
	slow, err := nats.Connect(embeddedtest.LinkProxy(t, g.srv.NATSURL, func(r embeddedtest.Request) embeddedtest.Fate {
		if strings.Contains(r.Subject, "."+names[0]+".") || strings.Contains(r.Subject, "."+names[1]+".") {
			return embeddedtest.Fate{Delay: timer.MaxPast + 200*time.Millisecond}
		}
		return embeddedtest.Fate{}
	}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Close)
	e.cfg.NATS = slow
	n := decide.Notice{Key: newKey(), Topic: "app", Group: "g", Rule: "Many", To: decide.Firing, At: time.Now().UnixNano()}
	for _, name := range names {
		n.Calls = append(n.Calls, decide.Call{Receiver: name, URL: "http://127.0.0.1:9/"})
	}
	embeddedtest.Eventually(t, longestWait, func() error { return e.deliver(g.ctx, &n) }) // as each round does until it is told
	for _, name := range names {
		if told := g.told(name); !slices.Equal(told, []string{n.Key}) {
			t.Errorf("%s is told of %q, want %q", name, told, n.Key)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.faults) > 0 {
		t.Errorf("%v", g.faults)
	}
}
