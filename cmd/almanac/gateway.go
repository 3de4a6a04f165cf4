package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/ops/families"
	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
)

func (a *app) gatewayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Run one gateway, for production",
		Long: `Run one gateway: it takes events over HTTP and serves every read. Any number may
run. It listens on loopback. Beyond it each listener needs TLS (tls_cert, tls_key)
and a token.`,
		Example: `  almanac gateway --nats nats://nats-1:4222 --clickhouse http://…@ch-1:8123/almanac
  curl -H 'Content-Type: application/x-ndjson' --data-binary @events.ndjson http://127.0.0.1:7070/v1/topics/app/events`,
		Args: arguments(0, 0),
		RunE: a.does(a.gateway),
	}
	keyFlags(cmd.Flags(), "ports", "http", "otlp_http", "otlp_grpc", "otlp_once", "clickhouse_reads")
	keyFlags(cmd.Flags(), drainKeys...)
	keyFlags(cmd.Flags(), shipperKeys...)
	return cmd
}

// gatewayGCPercent is how much the heap of a gateway's process may grow between two
// collections, and gatewayHeapBytes the size from which that does not matter: Go
// collects as often as it takes to stay below. What a gateway keeps is small beside the
// requests that it reads and forgets. On one core at full load (internal/bench/suite --only
// inputs) 400 in place of Go's 100 took 12 to 18 % of the CPU away: OTLP 4.13 to 3.56
// microseconds an event, NDJSON 4.06 to 3.50, bulk 4.94 to 4.06.
const (
	gatewayGCPercent = 400
	gatewayHeapBytes = 384 << 20
)

// collectLess sets both, unless the user did.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gatewayGCPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(gatewayHeapBytes)
	}
}

func (a *app) gateway(ctx context.Context, cmd *cobra.Command, _ []string) error {
	collectLess()
	one, err := a.newSingle(cmd, "gateway", bothServers)
	if err != nil {
		return err
	}
	s, log := one.s, one.log
	in, err := listenInputs(s, log)
	if err != nil {
		return err
	}
	defer in.close()
	one.starts = in.starts
	g := in.gateway(s, log)
	defer one.close()
	working, end := draining(ctx, s, log, in.drain)
	defer end()
	return runStages(working, s.ShutdownTimeout, stage{g, in.numbers.exporter(s, log)}, stage{partFunc(func(ctx context.Context) error {
		ready, err := one.begin(ctx, func(ctx context.Context) error { return one.openGateway(ctx, in, g) })
		if ready {
			<-ctx.Done()
		}
		return err
	})})
}

// openGateway opens the servers and gives the gateway of the listeners what it reads and writes by. begin calls it
// again while an error may pass. openTables does not connect: its only error, a bad address, ends the gateway.
func (o *single) openGateway(ctx context.Context, in *inputs, g *gateway.Gateway) error {
	nc := o.nc
	reg, err := registry.Open(ctx, nc)
	if err != nil {
		return err
	}
	db, err := openTables(o.d)
	if err != nil {
		return err
	}
	db.MeantFor(reg)
	o.later(func() { _ = db.Close() })
	pages, err := o.pages(db, reg)
	if err != nil {
		return err
	}
	second, err := o.dial("gateway reads")
	if err != nil {
		return err
	}
	parts, err := gatewayParts(ctx, nc, second, reg, db, pages, nil, o.s, in.numbers, o.log)
	if err != nil {
		return err
	}
	if parts.Reads.User, parts.Reads.Password = o.d.readerUser, o.d.readerPassword; parts.Reads.User == "" {
		o.log.Warn().Msg("clickhouse_reader is not set: SQL that people ask runs as the gateway's own account, within the limits of readers; it can read the names of those who were erased")
	}
	parts.Reads.TopicSQL = !o.d.followClickHouse && parts.Reads.Password != "" // of a server whose accounts are its owner's to make
	in.measure(&parts, reg)
	reads := newReadsProbe(o, db, pages)
	parts.Background = append(parts.Background, reads.Run, o.own.Run)
	in.probe(func(context.Context) []ops.Reason {
		return slices.Concat(natsTrouble(nc), stalled(parts.Pool), reads.trouble(), o.own.trouble())
	})
	g.Open(parts)
	return nil
}

// pages opens the tables by the account that the settings name for reads; without one they are db.
func (o *single) pages(db *tables.DB, reg *registry.Registry) (*tables.DB, error) {
	if o.s.GatewayUser == "" {
		return db, nil
	}
	d, err := asReads(o.s, o.d)
	if err != nil {
		return nil, err
	}
	pages, err := openTables(d)
	if err != nil {
		return nil, err
	}
	pages.MeantFor(reg)
	o.later(func() { _ = pages.Close() })
	return pages, nil
}

// asReads are the endpoints with the account that the settings name for reads.
func asReads(s *settings, d endpoints) (endpoints, error) {
	at, err := url.Parse(d.clickhouse)
	if err != nil {
		return d, configError{errors.New("the address of ClickHouse is not a URL")} // the error has its password
	}
	at.User = url.UserPassword(s.GatewayUser, s.GatewayPassword)
	d.clickhouse = at.String()
	return d, nil
}

// inputs are the listeners of a gateway.
type inputs struct {
	opener   *opener
	numbers  *processNumbers
	http     *httpServer // nil: off
	otlp     otlpInputs
	shippers *shippers
}

// listenInputs takes the addresses. A default port that something else has is passed
// over with a warning, because it may be a Collector's; a configured one is an error.
func listenInputs(s *settings, log zerolog.Logger) (*inputs, error) {
	in := &inputs{numbers: newNumbers(log)}
	var err error
	if in.opener, err = newOpener(s, log); err != nil {
		return nil, err
	}
	in.http, err = listenHTTP(in.opener, in.numbers)
	if errors.Is(err, embedded.ErrPortInUse) && s.HTTP == "" {
		log.Warn().Msgf("%v. It is off in this process", err)
		err = nil
	}
	if err == nil {
		in.otlp, err = listenOTLP(in.opener)
	}
	if err == nil {
		in.shippers, err = listenShippers(in.opener)
	}
	if err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *inputs) close() {
	if in.shippers != nil {
		in.shippers.close()
	}
	in.otlp.close()
	if in.http != nil {
		in.http.close()
	}
	in.opener.close()
}

// name writes where the inputs listen.
func (in *inputs) name(a *embedded.Addresses) {
	if in.http != nil {
		a.HTTP = in.http.url()
	}
	in.otlp.name(a)
	in.shippers.name(a)
}

// drain says that the process ends.
func (in *inputs) drain() {
	if in.http != nil {
		in.http.health.Drain()
	}
}

// starts says what the start waits for.
func (in *inputs) starts(r ops.Reason) {
	if in.http != nil {
		in.http.health.Starts(r)
	}
}

func (in *inputs) probe(ask func(context.Context) []ops.Reason) {
	if in.http != nil {
		in.http.health.Probe(ask)
	}
}

// stateApart is a variable so that tests need not wait for the next read.
var stateApart = families.StateApart

// measure gives the registry of this process the numbers of parts, and the API what serves it.
func (in *inputs) measure(parts *gateway.Parts, reg *registry.Registry, more ...metrics.Source) {
	in.numbers.Read(append(more, families.Timers(reg, parts.Reads.Timers), families.Rules(in.numbers.Registry, reg), families.Producers(in.numbers.Registry, parts.Pool))...)
	in.numbers.Read(families.State(in.numbers.Registry, parts.Reads.Reader, stateApart)...)
	parts.Reads.Metrics = in.numbers.Handler()
}

// gateway makes the gateway of the listeners.
func (in *inputs) gateway(s *settings, log zerolog.Logger) *gateway.Gateway {
	log = log.With().Str("part", "gateway").Logger()
	cfg := gateway.Config{
		OTLPHTTP: in.otlp.http, OTLPGRPC: in.otlp.grpc, OTLPEachTime: s.OTLPEachTime,
		AuditReads: s.AuditReads, AuditActor: s.AuditActor, Version: thisVersion().Version,
		Grace:   max(s.ShutdownTimeout-drainMargin, s.ShutdownTimeout/2),
		OnError: func(err error) { log.Error().Err(err).Msg("gateway") },
	}
	if h := in.http; h != nil {
		cfg.HTTP, cfg.Health, cfg.Draining = h.listener, h.health, h.health.Drain
	}
	in.shippers.configure(&cfg, s, log)
	cfg.Tokens, cfg.Unasked, cfg.TLS = in.opener.tokens, in.opener.unasked(), in.opener.secure()
	cfg.InsecureHosts = s.InsecureHosts
	cfg.OnRefused, cfg.OnRequest = in.numbers.refused(log), in.numbers.inputs().Request
	cfg.OnLimit = in.numbers.inputs().Limited
	return gateway.New(cfg)
}

// drainMargin is how much of shutdown_timeout is left when requests under way are cut
// off: for the producers to flush.
const drainMargin = 6 * time.Second
