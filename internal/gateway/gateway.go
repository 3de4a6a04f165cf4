package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/gateway/api"
	"github.com/almanac-events/almanac/internal/gateway/console"
	"github.com/almanac-events/almanac/internal/gateway/elastic"
	"github.com/almanac-events/almanac/internal/gateway/lines"
	"github.com/almanac-events/almanac/internal/gateway/lokiread"
	"github.com/almanac-events/almanac/internal/gateway/mcp"
	"github.com/almanac-events/almanac/internal/gateway/otlp"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/promapi"
	"github.com/almanac-events/almanac/internal/gateway/recording"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/gateway/syslog"
	"github.com/almanac-events/almanac/query/logql"
	"github.com/almanac-events/almanac/query/prometheus"
)

// Config of a gateway. A listener that is nil is off.
type Config struct {
	// HTTP is the listener of the API and of every input that has a path.
	HTTP net.Listener
	// OTLPHTTP and OTLPGRPC are the listeners of OpenTelemetry's exporters.
	OTLPHTTP, OTLPGRPC net.Listener
	// OTLPEachTime stores an OTLP request again that is sent again.
	OTLPEachTime bool
	// Elastic is a listener for clients of Elasticsearch that take no path.
	Elastic net.Listener
	// Syslog is where syslog messages come from.
	Syslog syslog.Listeners
	// Topic takes what names no topic by itself.
	Topic string
	// MetricsTopic takes samples of metrics whose client names no topic, and is what reads of
	// metrics are about that name none.
	MetricsTopic string
	// SyslogTopic takes all syslog messages; SyslogZone is the zone of those that name
	// none, nil for UTC.
	SyslogTopic string
	SyslogZone  *time.Location
	// OnSyslog hears why syslog messages wait or are lost. It may be called often.
	OnSyslog func(error)
	// AuditReads, where set, is the topic of kind audit that each read of the API is recorded in
	// before it is answered; AuditActor is the header that claims who asks (package recording).
	AuditReads, AuditActor string
	// Tokens are who may ask; nil: all may do everything.
	Tokens    Authenticator
	OnRefused OnRefused
	// OnRequest hears of each request of an input that was answered, with the bytes of its body; -1 where the client did not say.
	OnRequest func(in pool.Input, code int, took time.Duration, received int64)
	// Unasked says which clients need no token for what changes and costs nothing.
	Unasked Unasked
	// InsecureHosts are the names that requests may have as Host where Unasked is UnaskedAll and TLS is nil (guard.Config).
	InsecureHosts []string
	// TLS is what HTTP, OTLP and Elastic speak; nil: plain text. An Authenticator is given the subject of a client's
	// certificate that it verifies.
	TLS *tls.Config
	// Health answers /healthz, /readyz and /version; /metrics too until the gateway is open.
	Health http.Handler
	// Draining is called when Run begins to end.
	Draining func()
	// Version of this program, for clients that ask.
	Version string
	// Hold is how long a request waits for Open before it is refused: several clients lose what is refused. Default
	// pool.Hold, as long as one waits for a stream that takes nothing.
	Hold time.Duration
	// Grace bounds how long requests under way may take at the end. Default DefaultGrace.
	Grace time.Duration
	// OnError hears what goes wrong beside the requests.
	OnError func(error)
	// OnLimit hears of each request that is refused because too many are under way.
	OnLimit request.OnLimit
	// OnTail hears of each tail that is followed; it may be nil.
	OnTail request.OnTail
}

// Parts are what the gateway needs of the servers. Pool is required.
type Parts struct {
	Pool *pool.Pool
	// Stored waits until SQL has what topics were given; nil without a ClickHouse.
	Stored func(ctx context.Context, topics []string) error
	// Reads is what the API serves; a zero Reader for none.
	Reads api.Config
	// Background runs from Open until Run ends.
	Background []func(context.Context) error
}

// DefaultGrace is as long as a request may wait for its answer, and a little.
const DefaultGrace = 10 * time.Second

// Gateway serves the inputs and the API.
type Gateway struct {
	cfg     Config
	handler http.Handler
	parts   Parts // set before opened is closed
	routes  routes
	elastic routes
	otlp    routes
	page    http.Handler
	logs    *otlp.Input // set before opened is closed
	opened  chan struct{}
	stopped chan struct{} // closed when Run begins to end: long reads end then
}

// New prepares a gateway.
func New(cfg Config) *Gateway {
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.Hold == 0 {
		cfg.Hold = pool.Hold
	}
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	if cfg.OnRefused == nil {
		cfg.OnRefused = func(Refusal) {}
	}
	if cfg.OnRequest == nil {
		cfg.OnRequest = func(pool.Input, int, time.Duration, int64) {}
	}
	if cfg.OnLimit == nil {
		cfg.OnLimit = func(string, string) {}
	}
	if cfg.Draining == nil {
		cfg.Draining = func() {}
	}
	g := &Gateway{cfg: cfg, page: console.New(), opened: make(chan struct{}), stopped: make(chan struct{})}
	g.otlp.fail = otlp.Fail
	g.routes.await, g.elastic.await, g.otlp.await = g.await, g.await, g.await
	g.handler = g.guarded(cfg.HTTP, http.HandlerFunc(g.serve), request.Fail, console.Owns)
	return g
}

// await waits until the gateway is open, for Hold at most.
func (g *Gateway) await(ctx context.Context) {
	left := time.NewTimer(g.cfg.Hold)
	defer left.Stop()
	select {
	case <-g.opened:
	case <-g.stopped:
	case <-ctx.Done():
	case <-left.C:
	}
}

// Open takes requests from now on. Until then Run holds them, and answers with 503 after Hold, but for the health
// of the process. Call it once.
func (g *Gateway) Open(p Parts) {
	g.parts = p
	g.routes.set(g.makeRoutes())
	g.elastic.set(g.counted(pool.InputElastic, elastic.New(elastic.Config{Pool: p.Pool})))
	g.logs = otlp.New(otlp.Config{
		Who: g.identify(), Loopback: OnLoopback(g.cfg.OTLPGRPC), Pool: p.Pool, Topic: g.cfg.Topic, MetricsTopic: g.cfg.MetricsTopic, EachTime: g.cfg.OTLPEachTime, OnError: g.cfg.OnError, OnLimit: g.cfg.OnLimit,
		OnCall: func(code int, took time.Duration, received int) {
			g.cfg.OnRequest(pool.InputOTLPGRPC, code, took, int64(received))
		},
	})
	g.otlp.set(g.counted(pool.InputOTLPHTTP, g.logs.Routes()))
	if g.cfg.Tokens != nil {
		g.parts.Background = append(g.parts.Background, g.cfg.Tokens.Run)
	}
	close(g.opened)
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	if g.cfg.Health != nil && (isHealth(r.URL.Path) || r.URL.Path == "/metrics" && !g.isOpen()) {
		g.cfg.Health.ServeHTTP(w, r)
		return
	}
	if console.Owns(r.URL.Path) {
		g.page.ServeHTTP(w, r)
		return
	}
	g.routes.ServeHTTP(w, r)
}

func (g *Gateway) isOpen() bool {
	select {
	case <-g.opened:
		return true
	default:
		return false
	}
}

func isHealth(path string) bool { return path == "/healthz" || path == "/readyz" || path == "/version" }

// makeRoutes returns the paths of the HTTP listener.
func (g *Gateway) makeRoutes() http.Handler {
	var served http.Handler
	mux := http.NewServeMux()
	mux.Handle("POST /v1/topics/{topic}/events", g.counted(pool.InputLines, lines.New(lines.Config{Pool: g.parts.Pool, Stored: g.parts.Stored, OnLimit: g.cfg.OnLimit})))
	g.addShippers(mux)
	if reads := g.parts.Reads; reads.Reader != nil {
		reads.Stopping, reads.Rates, reads.Own, reads.Version, reads.OnLimit = g.stopped, g.parts.Pool, g.parts.Pool.Own, g.cfg.Version, g.cfg.OnLimit
		reads.OnTail = g.cfg.OnTail
		reads.Listens = g.listens()
		reads.Inputs = func() (all []api.InputUse) {
			for _, u := range g.parts.Pool.Uses() {
				all = append(all, api.InputUse{Input: string(u.Input), Topic: u.Topic, LastEvent: u.LastEvent, Events: u.Events, PerSecond: u.PerSecond})
			}
			return all
		}
		promapi.New(promapi.Config{Store: prometheus.New(reads.Reader), Alerts: alerts.New(reads.Registry, reads.Reader), Topic: g.cfg.MetricsTopic, OnLimit: g.cfg.OnLimit}).Add(mux)
		lokiread.New(lokiread.Config{Engine: logql.New(reads.Reader), Stopping: g.stopped, OnLimit: g.cfg.OnLimit, OnTail: g.cfg.OnTail}).Add(mux)
		assistants := mcp.New(mcp.Config{
			Ask: mcp.Inside(func() http.Handler { return served }, func(v any, stack []byte) {
				g.cfg.OnError(request.Panicked("a request of /mcp", v, stack))
			}),
			Version: g.cfg.Version, Headers: []string{request.HeaderID, g.cfg.AuditActor}, OnLimit: g.cfg.OnLimit,
		})
		reads.MCP = assistants
		mux.Handle(mcp.Path, assistants) // other methods, which it refuses as clients expect
		routes := api.New(reads)
		routes.Add(mux)
		g.parts.Background = append(g.parts.Background, routes.Run)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		request.Fail(w, r, request.Refuse(http.StatusNotFound, "not_found", "nothing is at "+r.Method+" "+r.URL.Path, "the README lists the inputs, and docs/guide.md the reads"))
	})
	served = mux
	if g.cfg.AuditReads != "" {
		served = recording.Handler(mux, recording.Config{Pool: g.parts.Pool, Topic: g.cfg.AuditReads, ActorHeader: g.cfg.AuditActor})
	}
	served = accounted(served, budget.New(budget.DefaultBytes))
	return served
}

// accounted gives each request an account, from which its read takes.
func accounted(next http.Handler, b *budget.Budget) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, account := b.Begin(r.Context())
		defer account.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Run serves until ctx ends, and then drains. It returns the error of a listener that
// fails before.
func (g *Gateway) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	var servers []server
	if g.cfg.HTTP != nil {
		servers = append(servers, g.serveHTTP("HTTP", g.cfg.HTTP, g.handler, failed))
	}
	if g.cfg.Elastic != nil {
		servers = append(servers, g.serveHTTP("Elastic", g.cfg.Elastic, g.guarded(g.cfg.Elastic, &g.elastic, request.Fail, nil), failed))
	}
	if g.cfg.OTLPHTTP != nil {
		servers = append(servers, g.serveHTTP("OTLP/HTTP", g.cfg.OTLPHTTP, g.guarded(g.cfg.OTLPHTTP, &g.otlp, otlp.Fail, nil), failed))
	}
	grpcServer := make(chan server, 1)
	go g.serveGRPC(grpcServer, failed)
	stopSyslog := g.runSyslog(ctx, failed)
	stopPool := g.runWith(ctx, func() []func(context.Context) error { return []func(context.Context) error{g.parts.Pool.Run} })
	stopBackground := g.runWith(ctx, func() []func(context.Context) error { return g.parts.Background })
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	close(g.stopped)
	g.cfg.Draining()
	stopSyslog()
	if s := <-grpcServer; s != nil {
		servers = append(servers, s)
	}
	ended := make(chan struct{})
	go func() { // jobs go back into the queue while requests under way end
		defer close(ended)
		stopBackground()
	}()
	g.drain(ctx, servers)
	<-ended
	stopPool()
	return err
}

// serveGRPC serves OTLP/gRPC once the gateway is open, and gives the server, or nil when
// there is none. Clients wait in the listener's queue until then.
func (g *Gateway) serveGRPC(served chan<- server, failed chan<- error) {
	if g.cfg.OTLPGRPC == nil {
		served <- nil
		return
	}
	select {
	case <-g.opened:
	case <-g.stopped:
		_ = g.cfg.OTLPGRPC.Close()
		served <- nil
		return
	}
	s := g.logs.NewGRPC(g.cfg.TLS)
	served <- s
	if err := s.Serve(unstalled{Bounded(g.cfg.OTLPGRPC, Bound{What: "OTLP/gRPC connections", Connections: maxGRPC, OnLimit: g.cfg.OnLimit})}); err != nil {
		select {
		case failed <- err:
		default:
		}
	}
}

// runWith runs parts once the gateway is open. The function it returns ends them and
// waits.
func (g *Gateway) runWith(ctx context.Context, parts func() []func(context.Context) error) (stop func()) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	all.Go(func() {
		select {
		case <-g.opened:
		case <-running.Done():
			return
		}
		for _, run := range parts() {
			all.Go(func() {
				if err := run(running); err != nil {
					g.cfg.OnError(fmt.Errorf("gateway: ending: %w", err))
				}
			})
		}
	})
	return func() {
		cancel()
		all.Wait()
	}
}

// server is a listener that serves.
type server interface {
	// Shutdown closes the listener and returns when every request has ended, or ctx.
	Shutdown(ctx context.Context) error
}

// drain ends all servers, at once and within Grace.
func (g *Gateway) drain(ctx context.Context, servers []server) {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Grace)
	defer cancel()
	select {
	case <-g.opened:
		g.parts.Pool.Drain()
	default:
	}
	ended := make(chan error, len(servers))
	for _, s := range servers {
		go func() { ended <- s.Shutdown(grace) }()
	}
	for range servers {
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			g.cfg.OnError(fmt.Errorf("gateway: requests under way were cut off after %s: %w", g.cfg.Grace, err))
		}
	}
}
