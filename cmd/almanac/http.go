package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/guard"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/jsonout"
	"github.com/almanac-events/almanac/internal/timers/exposition"
)

// defaultHTTPPort is Almanac's own.
const defaultHTTPPort = 7070

// httpOff as --http opens no listener.
const httpOff = "off"

// httpServer answers whether this process lives and can work.
type httpServer struct {
	listener net.Listener
	opener   *opener
	ask      atomic.Pointer[func(context.Context) []string] // nil: still starting
	draining atomic.Bool
	metrics  atomic.Pointer[http.Handler] // nil: none, or still starting
	sync     string                       // doctor.SyncAlways where that is known
}

// listenHTTP takes the address; nil when it is off.
func listenHTTP(d *opener) (*httpServer, error) {
	l, err := d.listen("http", d.s.HTTP, defaultHTTPPort)
	if err != nil || l == nil {
		return nil, err
	}
	return &httpServer{listener: l, opener: d}, nil
}

func (h *httpServer) url() string { return h.opener.url(h.listener) }

func (h *httpServer) close() { _ = h.listener.Close() }

// probe says how to ask whether the process can work; from then on it may be ready.
func (h *httpServer) probe(ask func(context.Context) []string) { h.ask.Store(&ask) }

// health answers how the process is, and nothing else.
func (h *httpServer) health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, thisVersion()) })
	mux.HandleFunc("GET /metrics", h.scraped)
	mux.HandleFunc("/", nothing)
	return mux
}

// nothing is what is at other paths.
func nothing(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusNotFound, map[string]any{"error": map[string]string{
		"code": "not_found", "message": "nothing is at " + r.URL.Path, "hint": "there are /healthz, /readyz and /version, and /metrics of a dispatcher"}})
}

// measured says what /metrics serves from now on.
func (h *httpServer) measured(sources ...exposition.Source) {
	served := exposition.Handler(func(w http.ResponseWriter, _ *http.Request, err error) {
		answer(w, http.StatusServiceUnavailable, map[string]any{"error": map[string]string{
			"code": "unavailable", "message": err.Error(), "hint": "/readyz says what is wrong"}})
	}, sources...)
	h.metrics.Store(&served)
}

func (h *httpServer) scraped(w http.ResponseWriter, r *http.Request) {
	if served := h.metrics.Load(); served != nil {
		if err := access.From(r.Context()).May(access.Metrics, ""); err != nil {
			request.Fail(w, r, err)
			return
		}
		(*served).ServeHTTP(w, r)
		return
	}
	nothing(w, r)
}

// Run serves until ctx ends.
func (h *httpServer) Run(ctx context.Context) error {
	guarded := guard.Handler(h.health(), guard.Config{Fail: request.Fail, Who: gateway.Who(h.opener.tokens, h.opener.open(), sayRefused(h.opener.log))})
	srv := &http.Server{Handler: guarded, ReadHeaderTimeout: httpWait, ReadTimeout: httpWait, WriteTimeout: 2 * httpWait}
	go func() {
		<-ctx.Done()
		h.draining.Store(true)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = srv.Shutdown(grace)
	}()
	if err := srv.Serve(gateway.Secured(h.listener, h.opener.secure())); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("HTTP: %w", err)
	}
	return nil
}

// httpWait bounds a request: each is a line, and each answer a question to
// two servers.
const httpWait = 5 * time.Second

func (h *httpServer) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), httpWait)
	defer cancel()
	var reasons []string
	switch ask := h.ask.Load(); {
	case h.draining.Load():
		reasons = []string{"draining: a signal asked this process to stop"}
	case ask == nil:
		reasons = []string{"starting"}
	default:
		reasons = (*ask)(ctx)
	}
	code := http.StatusOK
	if len(reasons) > 0 {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, map[string]any{"ready": len(reasons) == 0, "reasons": append([]string{}, reasons...), "sync": h.sync})
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = jsonout.Write(w, v)
}
