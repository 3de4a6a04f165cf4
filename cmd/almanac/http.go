package main

import (
	"context"
	"net"
	"net/http"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/guard"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// defaultHTTPPort is Almanac's own.
const defaultHTTPPort = 7070

// httpOff as --http opens no listener.
const httpOff = "off"

// httpServer is the listener of --http, and what says there how this process is.
type httpServer struct {
	listener net.Listener
	opener   *opener
	health   *ops.Health
	numbers  *metrics.Registry
}

// listenHTTP takes the address; nil when it is off.
func listenHTTP(d *opener) (*httpServer, error) {
	l, err := d.listen("http", d.s.HTTP, defaultHTTPPort)
	if err != nil || l == nil {
		return nil, err
	}
	numbers := newNumbers(d.log)
	return &httpServer{listener: l, opener: d, numbers: numbers, health: ops.New(ops.Config{
		Version: thisVersion(), Metrics: numbers.Handler(), Fail: request.Fail,
	})}, nil
}

// newNumbers makes the registry of this process.
func newNumbers(log zerolog.Logger) *metrics.Registry {
	v, again := thisVersion(), newRationer()
	return metrics.New(metrics.Config{Version: v.Version, Commit: v.Commit, Go: v.Go, OnError: func(source string, err error) {
		if more, ok := again.pass(source); ok {
			log.Warn().Err(err).Str("source", source).Int("more", more).Msg("/metrics lacks the numbers of a source")
		}
	}})
}

func (h *httpServer) url() string { return h.opener.url(h.listener) }

func (h *httpServer) close() { _ = h.listener.Close() }

// Run serves the health of a process without a gateway until ctx ends.
func (h *httpServer) Run(ctx context.Context) error {
	s := ops.Server{
		Listener: gateway.Secured(h.listener, h.opener.secure()), Health: h.health,
		Guard: func(next http.Handler) http.Handler {
			return guard.Handler(next, guard.Config{Fail: request.Fail, Loopback: gateway.OnLoopback(h.listener), Who: gateway.Who(h.opener.tokens, h.opener.open(), sayRefused(h.opener.log))})
		},
	}
	return s.Run(ctx)
}
