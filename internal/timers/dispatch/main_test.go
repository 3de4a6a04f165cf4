package dispatch

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/timers/callback"
	"github.com/almanac-events/almanac/internal/timers/timerstest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// longestWait is how long anything may take on a busy machine.
const longestWait = 5 * time.Minute

var testLimits = schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, TimersBytes: 4 << 30, Replicas: 1}

// env is a server, a group of timers, and what was called.
type env struct {
	t   *testing.T
	ctx context.Context
	srv *embeddedtest.Servers
	reg *registry.Registry
	*timers.Timers
	url string
	// natsURL is where dispatchers connect.
	natsURL string

	mu     sync.Mutex
	calls  map[string][]call // by timer id
	answer func(c call) (status int, body string)
}

// call is a callback as the server got it.
type call struct {
	ID, Group, Life   string
	Revision, Attempt int64
	Due               time.Time
	came              time.Time
	key               string
}

func newEnv(t *testing.T, opts ...embeddedtest.Option) *env {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	t.Cleanup(cancel)
	e := &env{t: t, ctx: ctx, srv: embeddedtest.Start(t, append(opts, embeddedtest.WithoutClickHouse())...), calls: map[string][]call{}}
	e.natsURL = e.srv.NATSURL
	var err error
	if e.reg, err = registry.Setup(ctx, e.srv.NC(), testLimits); err != nil {
		t.Fatal(err)
	}
	e.group("g", func(g *timer.Group) { g.Answer = timer.AnswerJSON })
	if e.Timers, err = timers.Open(ctx, e.srv.NC(), e.reg, schemas.DefaultTimerTopic, timers.Config{}); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(s.Close)
	e.url = s.URL + "/"
	return e
}

// slots is how many slots groups have: ALMANAC_TIMERS_SLOTS, which figures are taken with.
func slots() int { return sized("ALMANAC_TIMERS_SLOTS", 16) }

func (e *env) group(name string, f func(*timer.Group)) {
	e.t.Helper()
	_, _, err := timers.ApplyGroup(e.ctx, e.reg, schemas.DefaultTimerTopic, name, func(g *timer.Group) error {
		g.Slots = slots()
		f(g)
		return nil
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) serve(w http.ResponseWriter, r *http.Request) {
	c := call{came: time.Now(), key: r.Header.Get("Idempotency-Key")}
	data, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(data, &c); err != nil {
		e.t.Error(err)
	}
	e.mu.Lock()
	e.calls[c.ID] = append(e.calls[c.ID], c)
	answer := e.answer
	e.mu.Unlock()
	status, body := 200, `{"ok":true}`
	if answer != nil {
		status, body = answer(c)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// answers sets how the server answers.
func (e *env) answers(f func(call) (int, string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f
}

// got returns the calls of a timer.
func (e *env) got(id string) []call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]call(nil), e.calls[id]...)
}

// called returns how many timers were called.
func (e *env) called() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.calls)
}

var loopback = []callback.Range{{Addresses: netip.MustParsePrefix("127.0.0.0/8"), Low: 1, High: 65535}}

// dispatcher starts one on a connection of its own; stop ends it in order, kill cuts its connection first.
func (e *env) dispatcher(change func(*Config)) (d *Dispatcher, stop, kill func()) {
	e.t.Helper()
	nc, err := nats.Connect(e.natsURL, nats.Timeout(20*time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		e.t.Fatal(err)
	}
	reg, err := registry.Open(e.ctx, nc)
	if err != nil {
		e.t.Fatal(err)
	}
	caller := callback.New(callback.Config{AllowCIDRs: loopback})
	cfg := Config{Registry: reg, Caller: caller, Discover: 200 * time.Millisecond, Hooks: Hooks{
		Fault: func(topic string, lane int, err error) { e.t.Logf("fault %s %d: %v", topic, lane, err) },
	}}
	if change != nil {
		change(&cfg)
	}
	if d, err = New(e.ctx, nc, cfg); err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(e.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Run(ctx)
	}()
	end := sync.OnceFunc(func() {
		cancel()
		<-done
		nc.Close()
		caller.Close()
	})
	e.t.Cleanup(end)
	return d, end, func() {
		nc.Close()
		end()
	}
}

func (e *env) create(n timers.Draft) timers.Timer {
	e.t.Helper()
	if n.Group == "" {
		n.Group = "g"
	}
	if n.URL == "" {
		n.URL = e.url
	}
	tm, _, err := e.Create(e.ctx, n)
	if err != nil {
		e.t.Fatal(err)
	}
	return tm
}

// createAll creates timers id0 … by many goroutines, due as the function says.
func (e *env) createAll(count int, due func(i int) time.Time) {
	e.t.Helper()
	e.createNamed("id", count, due)
}

func (e *env) createNamed(name string, count int, due func(i int) time.Time) {
	e.t.Helper()
	timerstest.Create(e.ctx, e.t, e.Timers, e.url, name, count, due)
}

// until waits for a condition.
func (e *env) until(what string, f func() bool) {
	e.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-e.ctx.Done():
			e.t.Fatalf("no end: %s", what)
		case <-tick.C:
		}
	}
}

// state waits until a timer is in a state, and returns it.
func (e *env) state(id string, want timer.State) (tm timers.Timer) {
	e.t.Helper()
	e.until(id+" is "+string(want), func() bool {
		var err error
		tm, err = e.Get(e.ctx, "g", id)
		return err == nil && tm.State == want
	})
	return tm
}

// allOver waits until no timer of the group is pending or firing.
func (e *env) allOver() {
	e.t.Helper()
	e.until("all timers are over", func() bool {
		all, err := e.Status(e.ctx)
		if err != nil {
			return false
		}
		for _, s := range all {
			if s.Pending+s.Firing > 0 {
				return false
			}
		}
		return true
	})
}

// sized is a test's size: small, or what the environment says.
func sized(name string, small int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return small
}
