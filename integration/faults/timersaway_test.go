package faults

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/timers/timerstest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// receiver is a server of callbacks at one address, which can be taken away and started again.
type receiver struct {
	*hooks
	address string
	srv     *http.Server
}

func (r *receiver) start(ctx context.Context) error {
	return patiently(ctx, func(ctx context.Context) error {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", r.address)
		if err != nil {
			return err
		}
		r.address, r.srv = l.Addr().String(), &http.Server{Handler: http.HandlerFunc(r.take), ReadHeaderTimeout: time.Minute}
		go func(srv *http.Server) { _ = srv.Serve(l) }(r.srv)
		return nil
	})
}

// stop cuts every connection.
func (r *receiver) stop() { _ = r.srv.Close() }

// receive starts a server of callbacks.
func receive(ctx context.Context, t *testing.T) *receiver {
	t.Helper()
	r := &receiver{hooks: &hooks{calls: map[string][]hook{}}, address: "127.0.0.1:0"}
	if err := r.start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop() })
	return r
}

// ofTimers builds a cluster with a group "g" of timers as set says.
func ofTimers(ctx context.Context, t *testing.T, plan Plan, set func(*timer.Group)) (*Cluster, *registry.Registry, *timers.Timers) {
	t.Helper()
	h := Build(t, plan)
	reg, err := registry.Open(ctx, h.NC)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = timers.ApplyGroup(ctx, reg, schemas.DefaultTimerTopic, "g", func(g *timer.Group) error {
		set(g)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := timers.Open(ctx, h.NC, reg, schemas.DefaultTimerTopic, timers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return h, reg, all
}

// TestTimersThroughOutages takes NATS, a dispatcher and the callbacks' server away while timers fall due, one after
// the other. Every timer is called successfully, none early. A call that is made again has the key of the first;
// that happens for a lost dispatcher alone, whose calls under way have no outcome, 1,000 at most.
// ALMANAC_TIMERS_AWAY timers for each, which is away for ALMANAC_TIMERS_AWAY_SECONDS.
func TestTimersThroughOutages(t *testing.T) {
	n, away := number("ALMANAC_TIMERS_AWAY", 300), time.Duration(number("ALMANAC_TIMERS_AWAY_SECONDS", 2))*time.Second
	_, rnd := Seed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	h, reg, all := ofTimers(ctx, t, Plan{Dispatchers: 2}, func(g *timer.Group) {
		g.Slots, g.Retry = 16, &timer.Policy{Attempts: 100, Initial: 200 * time.Millisecond, MaxInterval: 2 * time.Second}
	})
	r := receive(ctx, t)
	part := func(role Role) (take, back func()) {
		p, _ := h.pick(role, rnd)
		return p.Kill, func() { h.start(p); h.ready(p) }
	}
	for _, c := range []struct {
		name  string
		parts func() (take, back func())
		twice int
	}{
		{"nats", func() (take, back func()) { return part(RoleNATS) }, 0},
		{"dispatcher", func() (take, back func()) { return part(RoleTimers) }, 1000},
		{"receiver", func() (take, back func()) {
			return r.stop, func() {
				if err := r.start(ctx); err != nil {
					t.Error(err)
				}
			}
		}, 0},
	} {
		pilot := n/10 + 1
		began := time.Now()
		create(ctx, t, all, r.address, c.name+"-pilot", pilot, func(int) time.Time { return time.Now() })
		start := time.Now().Add(20*time.Since(began) + time.Second) // when the others have been created
		create(ctx, t, all, r.address, c.name, n, func(i int) time.Time { return start.Add(away * time.Duration(i) / time.Duration(n)) })
		if err := backoff.Sleep(ctx, time.Until(start.Add(away/10))); err != nil {
			t.Fatal(err)
		}
		take, back := c.parts()
		take()
		if err := backoff.Sleep(ctx, away); err != nil {
			t.Fatal(err)
		}
		back()
		err := until(ctx, recoveryLimit, 200*time.Millisecond, func(ctx context.Context) error {
			s, err := all.Status(ctx)
			if err == nil && s[0].Pending+s[0].Firing > 0 {
				err = fmt.Errorf("%+v", s[0])
			}
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		twice := r.twice(t, c.name, n)
		t.Logf("%s away for %s: %d timers, %d calls were made again under their key", c.name, away, n, twice)
		if twice > c.twice {
			t.Errorf("%s: %d calls were made again, expected %d at most", c.name, twice, c.twice)
		}
	}
	s, err := all.Status(ctx)
	if err != nil || s[0].Done == 0 || s[0].Failed > 0 {
		t.Errorf("%+v, %v", s, err)
	}
	proven(ctx, t, h, reg, schemas.DefaultTimerTopic, false)
}

// create makes timers by many goroutines, due as the function says, or at once where that has passed.
func create(ctx context.Context, t *testing.T, all *timers.Timers, address, name string, n int, due func(int) time.Time) {
	t.Helper()
	timerstest.Create(ctx, t, all, "http://"+address+"/", name+"-", n, due)
}

// take answers every call with success.
func (h *hooks) take(w http.ResponseWriter, r *http.Request) {
	if _, ok := h.keep(r); ok {
		_, _ = w.Write([]byte(`{"ok":true}`))
	}
}

// twice holds that each timer of a name was called, none early, and counts the calls under a key that came before.
func (h *hooks) twice(t *testing.T, name string, n int) (twice int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range n {
		id := fmt.Sprintf("%s-%d", name, i)
		keys, calls := map[string]bool{}, h.calls[id]
		if len(calls) == 0 {
			t.Errorf("%s was not called", id)
		}
		for _, c := range calls {
			if c.came.Before(c.Due) {
				t.Errorf("%s came %s early", id, c.Due.Sub(c.came))
			}
			if keys[c.key] {
				twice++
			}
			keys[c.key] = true
			if life, _, _ := strings.Cut(c.key, "-1-"); c.key != fmt.Sprintf("%s-1-%d", life, c.Attempt) || life != strings.Split(calls[0].key, "-1-")[0] {
				t.Errorf("%s, attempt %d: key %s, after %s", id, c.Attempt, c.key, calls[0].key)
			}
		}
	}
	return twice
}
