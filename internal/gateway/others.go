package gateway

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/almanac-events/almanac/internal/gateway/elastic"
	"github.com/almanac-events/almanac/internal/gateway/guard"
	"github.com/almanac-events/almanac/internal/gateway/loki"
	"github.com/almanac-events/almanac/internal/gateway/lokiread"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/promapi"
	"github.com/almanac-events/almanac/internal/gateway/remotewrite"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/gateway/syslog"
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

// routes are the paths of a listener, once there is a pool.
type routes struct {
	atomic.Pointer[http.Handler]
	fail guard.Refuser // request.Fail where nil
	// await returns once there is a pool, or where that is not worth waiting for.
	await func(context.Context)
}

func (r *routes) set(h http.Handler) { r.Store(&h) }

// ServeHTTP implements http.Handler.
func (r *routes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.Load() == nil {
		r.await(req.Context())
	}
	if h := r.Load(); h != nil {
		(*h).ServeHTTP(w, req)
		return
	}
	w.Header().Set("Retry-After", "1")
	fail := r.fail
	if fail == nil {
		fail = request.Fail
	}
	fail(w, req, request.Refuse(http.StatusServiceUnavailable, "starting", "this gateway does not have its servers yet", "send the same request again after Retry-After"))
}

// runSyslog runs the syslog listeners once there is a pool. The function it returns
// ends them: what they have read is taken before the pool refuses.
func (g *Gateway) runSyslog(ctx context.Context, failed chan<- error) (stop func()) {
	l := g.cfg.Syslog
	if len(l.Streams)+len(l.Packets) == 0 {
		return func() {}
	}
	reading, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-g.opened:
		case <-reading.Done():
		}
		in := syslog.New(syslog.Config{
			Pool: g.parts.Pool, Topic: g.cfg.SyslogTopic, Location: g.cfg.SyslogZone, OnError: g.cfg.OnSyslog,
		})
		if err := in.Run(reading, l, g.cfg.Grace/2); err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
