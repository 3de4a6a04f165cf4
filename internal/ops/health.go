package ops

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/jsonout"
)

// Wait bounds a request: each is a line, and each answer a question to two servers.
const Wait = 5 * time.Second

// Config of the health of a process.
type Config struct {
	// Version is what /version answers with.
	Version any
	// Metrics serves /metrics.
	Metrics http.Handler
	// Fail answers a request that is refused.
	Fail func(http.ResponseWriter, *http.Request, error)
}

// Health answers whether a process lives and can work.
type Health struct {
	cfg      Config
	mux      *http.ServeMux
	ask      atomic.Pointer[func(context.Context) []Reason] // nil: still starting
	starting atomic.Pointer[Reason]                         // why it still starts
	draining atomic.Bool
	sync     atomic.Pointer[string]
}

// New returns the health of a process that starts.
func New(cfg Config) *Health {
	h := &Health{cfg: cfg, mux: http.NewServeMux()}
	h.Starts(Because(Starting, "this process does not have its servers yet"))
	h.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	h.mux.HandleFunc("GET /readyz", h.readyz)
	h.mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, cfg.Version) })
	h.mux.HandleFunc("GET /metrics", h.metrics)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNotFound, map[string]any{"error": map[string]string{
			"code": "not_found", "message": "nothing is at " + r.URL.Path, "hint": "there are /healthz, /readyz, /version and /metrics"}})
	})
	return h
}

// Starts says how far the start has come, or what it waits for.
func (h *Health) Starts(r Reason) { h.starting.Store(&r) }

// Probe says how to ask what the process cannot do; from then on it may be ready.
func (h *Health) Probe(ask func(context.Context) []Reason) {
	ask = shared(ask)
	h.ask.Store(&ask)
}

// Synced says how the server writes to disk, where that is known.
func (h *Health) Synced(how string) { h.sync.Store(&how) }

// Drain says that the process ends: it is no longer ready.
func (h *Health) Drain() { h.draining.Store(true) }

// ServeHTTP answers.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

func (h *Health) metrics(w http.ResponseWriter, r *http.Request) {
	if who := access.From(r.Context()); who.May(access.Metrics, "") != nil {
		h.cfg.Fail(w, r, who.Refused(who.May(access.Metrics, "")))
		return
	}
	h.cfg.Metrics.ServeHTTP(w, r)
}

func (h *Health) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), Wait)
	defer cancel()
	now := Readiness{Reasons: []Reason{}}
	for _, r := range h.asked(ctx) {
		if r.Partial {
			now.Impaired = append(now.Impaired, r)
		} else {
			now.Reasons = append(now.Reasons, r)
		}
	}
	code := http.StatusOK
	if now.Ready = len(now.Reasons) == 0; !now.Ready {
		code = http.StatusServiceUnavailable
	}
	if s := h.sync.Load(); s != nil {
		now.Sync = *s
	}
	answer(w, code, now)
}

// Draining reports whether a signal asked this process to stop.
func (h *Health) Draining() bool { return h.draining.Load() }

// Ready reports whether the process can do its work.
func (h *Health) Ready(ctx context.Context) bool { return len(h.Reasons(ctx)) == 0 }

// Reasons returns why the process cannot do its work; none: it can.
func (h *Health) Reasons(ctx context.Context) []Reason {
	return slices.DeleteFunc(slices.Clone(h.asked(ctx)), func(r Reason) bool { return r.Partial })
}

// asked is what the process cannot do now.
func (h *Health) asked(ctx context.Context) []Reason {
	switch ask := h.ask.Load(); {
	case h.draining.Load():
		return []Reason{Because(Draining, "a signal asked this process to stop")}
	case ask == nil:
		return []Reason{*h.starting.Load()}
	default:
		return (*ask)(ctx)
	}
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = jsonout.Write(w, v)
}
