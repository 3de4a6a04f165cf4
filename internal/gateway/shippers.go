package gateway

import (
	"net"
	"net/http"
	"slices"

	"github.com/almanac-events/almanac/internal/gateway/api"
	"github.com/almanac-events/almanac/internal/gateway/elastic"
	"github.com/almanac-events/almanac/internal/gateway/loki"
	"github.com/almanac-events/almanac/internal/gateway/lokiread"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/promapi"
	"github.com/almanac-events/almanac/internal/gateway/remotewrite"
)

// What shippers send to.
var (
	pushes = []string{"POST /loki/api/v1/push", "POST /t/{topic}/loki/api/v1/push"}
	writes = []string{"POST /api/v1/write", "POST /t/{topic}/api/v1/write"}
)

const belowElastic = "/elastic/"

// Foreign are the routes of the HTTP listener that follow the rules of another program, apart from what is below /elastic: package
// operations does not declare them.
func Foreign() []string {
	return slices.Concat(pushes, writes, promapi.Patterns(), lokiread.Patterns())
}

// addShippers adds the paths of Loki, of Prometheus's remote write, and of Elasticsearch below
// /elastic.
func (g *Gateway) addShippers(mux *http.ServeMux) {
	push := g.counted(pool.InputLoki, loki.New(loki.Config{Pool: g.parts.Pool, Topic: g.cfg.Topic}))
	for _, pattern := range pushes {
		mux.Handle(pattern, push)
	}
	write := g.counted(pool.InputRemoteWrite, remotewrite.New(remotewrite.Config{Pool: g.parts.Pool, Topic: g.cfg.MetricsTopic}))
	for _, pattern := range writes {
		mux.Handle(pattern, write)
	}
	mux.Handle(belowElastic, http.StripPrefix("/elastic", g.counted(pool.InputElastic, elastic.New(elastic.Config{Pool: g.parts.Pool}))))
}

// listens returns the ports of inputs that have listeners of their own.
func (g *Gateway) listens() (all api.Listens) {
	if g.cfg.OTLPHTTP != nil {
		if at, ok := g.cfg.OTLPHTTP.Addr().(*net.TCPAddr); ok {
			all.OTLPHTTP = at.Port
		}
	}
	for _, l := range g.cfg.Syslog.Packets {
		if at, ok := l.LocalAddr().(*net.UDPAddr); ok {
			all.SyslogUDP, all.SyslogTopic = at.Port, g.cfg.SyslogTopic
		}
	}
	return all
}
