package ops

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
)

func newHealth() *Health {
	return New(Config{
		Version: map[string]string{"version": "v"},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "numbers") }),
		Fail: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusForbidden)
		},
	})
}

// TestHealth asks a process in each state of its life.
func TestHealth(t *testing.T) {
	t.Parallel()
	h := newHealth()
	ask := func(state, path string, code int, says string) {
		t.Helper()
		w := httptest.NewRecorder()
		ctx := access.With(t.Context(), access.Almanac)
		if path == "/metrics?" {
			ctx = access.With(t.Context(), &access.Principal{Name: "no right"})
		}
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		if w.Code != code || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s, %s: %d %s, expected %d %s", state, path, w.Code, w.Body, code, says)
		}
	}
	ask("starting", "/healthz", 200, `"ok"`)
	ask("starting", "/readyz", 503, `"ready":false,"reasons":[{"reason":"starting","message":"this process`)
	ask("starting", "/version", 200, `{"version":"v"}`)
	ask("starting", "/metrics", 200, "numbers")
	ask("starting", "/metrics?", 403, "")
	ask("starting", "/nothing", 404, "nothing is at /nothing")
	h.Starts(Because(Recovering, "NATS reads %d streams", 4))
	ask("recovering", "/readyz", 503, `{"reason":"recovering","message":"NATS reads 4 streams"}`)
	h.Probe(func(context.Context) []Reason { return []Reason{Because(Away, "no connection")} })
	ask("away", "/readyz", 503, `{"reason":"server_away","message":"no connection"}`)
	h.Probe(func(context.Context) []Reason { return nil })
	h.Synced("always")
	ask("ready", "/readyz", 200, `"ready":true,"reasons":[],"sync":"always"`)
	h.Drain()
	ask("draining", "/readyz", 503, `"reason":"draining"`)
	ask("draining", "/healthz", 200, `"ok"`)
}

// TestServer holds that what is served passes the guard, that the end drains, and that a listener that fails is told.
func TestServer(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := newHealth()
	s := Server{Listener: l, Health: h, Guard: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Guarded", "yes")
			next.ServeHTTP(w, r)
		})
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/healthz") //nolint:noctx // the server of this test
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Guarded") != "yes" {
		t.Errorf("%s, guarded: %q", resp.Status, resp.Header.Get("Guarded"))
	}
	cancel()
	if err := <-ended; err != nil || !h.draining.Load() {
		t.Errorf("it ended with %v, draining: %t", err, h.draining.Load())
	}
	if err := s.Run(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a listener that is closed: %v", err)
	}
}
