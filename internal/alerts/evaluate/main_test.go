package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
	"github.com/almanac-events/almanac/timers"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// longestWait is how long anything may take on a busy machine.
const longestWait = 4 * time.Minute

// rig is an Almanac with a router and a sink, and rules.
type rig struct {
	t   *testing.T
	ctx context.Context
	srv *embeddedtest.Servers
	reg *registry.Registry
	db  *tables.DB
	*alerts.Alerts
	stopRouter func()

	mu     sync.Mutex
	faults []error
}

func newRig(t *testing.T, topics ...schemas.Topic) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*longestWait) // a test waits several times
	t.Cleanup(cancel)
	g := &rig{t: t, ctx: ctx, srv: embeddedtest.Start(t)}
	var err error
	if g.reg, err = registry.Setup(ctx, g.srv.NC(), schemas.StreamLimits{EventsBytes: 128 << 20, ShardsBytes: 128 << 20, RegistryBytes: 8 << 20, TimersBytes: 256 << 20, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		if _, _, err := g.reg.Apply(ctx, topic, false); err != nil {
			t.Fatal(err)
		}
	}
	if g.db, err = tables.Open(g.srv.HTTPDSN()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.db.Close() })
	if err := g.db.EnsureLedger(ctx); err != nil {
		t.Fatal(err)
	}
	g.Alerts = alerts.New(g.reg, g.reader())
	g.stopRouter = g.router()
	k, err := sinks.New(ctx, g.srv.NC(), sinks.Config{Registry: g.reg, DB: g.db})
	if err != nil {
		t.Fatal(err)
	}
	g.background(k.Run)
	return g
}

func (g *rig) reader() *query.Reader {
	g.t.Helper()
	return answered(g, func() (*query.Reader, error) { return query.New(g.srv.NC(), g.reg, g.db) })
}

// answered is what a server said, which is asked again where it did not in time, as on a busy machine.
func answered[T any](g *rig, ask func() (T, error)) (answer T) {
	g.t.Helper()
	embeddedtest.Eventually(g.t, longestWait, func() (err error) {
		answer, err = ask()
		return err
	})
	return answer
}

// router runs a router until the test ends or stop is called.
func (g *rig) router() (stop func()) {
	g.t.Helper()
	r := answered(g, func() (*router.Router, error) { return router.New(g.ctx, g.srv.NC(), router.Config{Registry: g.reg}) })
	return g.background(r.Run)
}

func (g *rig) background(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.ctx))
	done := make(chan struct{})
	go func() { defer close(done); _ = f(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	g.t.Cleanup(stop)
	return stop
}

// evaluator makes one whose rounds the test makes, with a connection of its own.
func (g *rig) evaluator(crash func(string)) *Evaluator {
	g.t.Helper()
	return g.evaluatorBy(g.db, crash)
}

// evaluatorBy is the same by another way to ClickHouse.
func (g *rig) evaluatorBy(db *tables.DB, crash func(string)) *Evaluator {
	g.t.Helper()
	nc, err := nats.Connect(g.srv.NATSURL)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(nc.Close)
	reg := answered(g, func() (*registry.Registry, error) { return registry.Open(g.ctx, nc) })
	r := answered(g, func() (*query.Reader, error) { return query.New(nc, reg, db) })
	e, err := New(Config{NATS: nc, Registry: reg, Reader: r, Crash: crash, Hooks: Hooks{Fault: func(_ string, err error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.faults = append(g.faults, err)
	}}})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(e.close)
	return e
}

// apply declares rules in YAML.
func (g *rig) apply(text string) {
	g.t.Helper()
	groups, err := alerts.Parse([]byte(text))
	if err != nil {
		g.t.Fatal(err)
	}
	embeddedtest.Eventually(g.t, longestWait, func() error { return g.Apply(g.ctx, groups) })
}

// send stores events. Those of a user are one frame, so that they are accepted at one time however busy the machine is.
func (g *rig) send(topic string, all ...schemas.Event) {
	g.t.Helper()
	p, err := producer.New(g.ctx, g.srv.NC(), producer.Config{Topic: topic, Policy: producer.Block, Linger: time.Minute})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, ev := range all {
		p.Log(ev)
	}
	if err := p.Close(g.ctx); err != nil {
		g.t.Fatal(err)
	}
}

// failures are n failed logins of each user.
func failures(n int, users ...string) (all []schemas.Event) {
	for _, u := range users {
		for range n {
			all = append(all, schemas.Event{Type: "login_failed", UserID: u, Message: "no"})
		}
	}
	return all
}

// rounds makes rounds of an evaluator until done is nil.
func (g *rig) rounds(e *Evaluator, done func() error) {
	g.t.Helper()
	embeddedtest.Eventually(g.t, longestWait, func() error {
		if err := e.Round(g.ctx); err != nil {
			return err
		}
		return done()
	})
}

// history are the transitions so far, the oldest first: rule, value and state.
func (g *rig) history() (all []string) {
	g.t.Helper()
	page := answered(g, func() (*alerts.Page, error) { return g.History(g.ctx, alerts.Past{}) })
	slices.Reverse(page.Alerts)
	for _, a := range page.Alerts {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", a.Rule, a.Value, a.State, a.Reason)))
	}
	slices.Sort(all)
	return all
}

// has is nil once the transitions are these, in any order.
func (g *rig) has(want ...string) func() error {
	slices.Sort(want)
	return func() error {
		if got := g.history(); !slices.Equal(got, want) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return fmt.Errorf("the transitions are %q, want %q; faults: %w", got, want, errors.Join(g.faults...))
		}
		return nil
	}
}

// told are the ids of the timers of a receiver.
func (g *rig) told(receiver string) (ids []string) {
	g.t.Helper()
	tm := answered(g, func() (*timers.Timers, error) {
		return timers.Open(g.ctx, g.srv.NC(), g.reg, schemas.TopicAlertCalls, timers.Config{})
	})
	page := answered(g, func() (timers.Page, error) { return tm.List(g.ctx, receiver, timers.Filter{}) })
	for i := range page.Timers {
		ids = append(ids, page.Timers[i].ID)
	}
	slices.Sort(ids)
	return ids
}

// erase erases a user's events of a topic.
func (g *rig) erase(topic, user string) {
	g.t.Helper()
	x, err := erasure.New(g.ctx, erasure.Config{Registry: g.reg, Reader: g.reader(), DB: g.db, Within: longestWait})
	if err != nil {
		g.t.Fatal(err)
	}
	job, err := x.Start(g.ctx, erasure.Request{Topic: topic, Users: []string{user}})
	if err == nil {
		_, err = x.Run(g.ctx, job.Topic, job.ID)
	}
	if err != nil {
		g.t.Fatal(err)
	}
}
