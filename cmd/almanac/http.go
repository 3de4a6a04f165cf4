package main

import (
	"context"
	"net"
	"net/http"

	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/guard"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/ops/families"
)

// defaultHTTPPort is Almanac's own.
const defaultHTTPPort = 7070

// httpServer is the listener of --http, and what says there how this process is.
type httpServer struct {
	listener net.Listener
	opener   *opener
	health   *ops.Health
	numbers  *processNumbers
}

// listenHTTP takes the address; nil when it is off.
func listenHTTP(d *opener, n *processNumbers) (*httpServer, error) {
	l, err := d.listen("http", d.s.HTTP, defaultHTTPPort)
	if err != nil || l == nil {
		return nil, err
	}
	health := ops.New(ops.Config{Version: thisVersion(), Metrics: n.Handler(), Fail: request.Fail})
	n.Read(families.Certificates(d.ends, d.missing), families.Ready(health.Ready, health.Draining))
	return &httpServer{listener: l, opener: d, numbers: n, health: health}, nil
}

func (h *httpServer) url() string { return h.opener.url(h.listener) }

func (h *httpServer) close() { _ = h.listener.Close() }

// maxHealthConnections bounds those of a process without a gateway: probes and scrapes are a few.
const maxHealthConnections = 256

// Run serves the health of a process without a gateway until ctx ends.
func (h *httpServer) Run(ctx context.Context) error {
	s := ops.Server{
		Listener: gateway.Secured(gateway.Bounded(h.listener, gateway.Bound{What: "health connections", Connections: maxHealthConnections, OnLimit: func(what, why string) { h.numbers.inputs().Limited(what, why) }}), h.opener.secure()), Health: h.health,
		Guard: func(next http.Handler) http.Handler {
			return guard.Handler(next, guard.Config{Fail: request.Fail, Loopback: gateway.OnLoopback(h.listener), Unasked: gateway.Exposed(h.listener, h.opener.unasked(), h.opener.secure()), Hosts: h.opener.s.InsecureHosts, Who: gateway.Identify(h.opener.tokens, h.opener.unasked(), h.numbers.refused(h.opener.log))})
		},
	}
	return s.Run(ctx)
}
