package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/doctor"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/ops/families"
	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// upKeys are the settings that up has; config check and show take them too.
var upKeys = []string{"cold_dir", "nats_client_ca", "ports", "http", "otlp_http", "otlp_grpc", "otlp_once", "profile", "replicas", "events_bytes", "shards_bytes", "docs_bytes", "timers_bytes", "replay_window", "verify_every"}

func (a *app) upCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all of Almanac on this machine",
		Long: `Run all of Almanac on this machine: a NATS server with JetStream, a ClickHouse,
the router and the sinks, until Ctrl-C. It listens on loopback. Beyond it HTTP, OTLP
and Elastic need TLS (tls_cert, tls_key) and a token, NATS TLS and a password. The addresses are written into the data directory, where the other verbs find them.

The topics of the settings file are declared, and the topic app if there is none.`,
		Example: `  almanac up
  almanac up --data ./data --ports auto
  ALMANAC_CLICKHOUSE_FILE=dsn.txt almanac up`,
		Annotations: exits{exitHung: "the embedded NATS hangs: start this again"}.declared(),
		Args:        arguments(0, 0),
		RunE:        a.does(a.up),
	}
	keyFlags(cmd.Flags(), upKeys...)
	keyFlags(cmd.Flags(), drainKeys...)
	keyFlags(cmd.Flags(), shipperKeys...)
	keyFlags(cmd.Flags(), timerKeys...)
	return cmd
}

// node is everything `up` runs.
type node struct {
	s       *settings
	log     zerolog.Logger
	dir     *embedded.DataDir
	servers *servers
	inputs  *inputs
	gateway *gateway.Gateway
	served  part // the gateway, which runs already
	pool    *pool.Pool
	// accounts are those at a ClickHouse elsewhere; nil: it runs its own.
	accounts *ownAccounts
	calls    part // those of timers
	topics   []schemas.Topic
	stages   []stage // in the order in which they end
	numbers  []metrics.Source
	closers  []func()
}

func (a *app) up(ctx context.Context, cmd *cobra.Command, _ []string) error {
	began := time.Now()
	s, err := load(cmd)
	if err != nil {
		return err
	}
	n := &node{s: s, log: s.logger(a.stderr)}
	abortOnPanic()
	outlive(newReloader(cmd, s, n.log).reload)
	defer n.close()
	if err := n.start(ctx); err != nil {
		if ctx.Err() != nil { // nothing was promised yet: it ends as one that was ready
			return nil
		}
		return err
	}
	// A command that looks for this Almanac from then on reports that it is ending.
	defer context.AfterFunc(ctx, func() { _ = embedded.RemoveAddresses(n.dir.Path()) })()
	n.ready(a.stderr, time.Since(began))
	tellReady(n.log)
	working, end := draining(ctx, s, n.log, n.inputs.drain, n.inputs.reasons)
	defer end()
	last := len(n.stages) - 1 // the servers, which end after the numbers were read once more
	return runStages(working, s.ShutdownTimeout, slices.Insert(n.stages, last, stage{n.inputs.numbers.exporter(s, n.log)})...)
}

// close undoes what start did, in reverse. The data directory is let go last.
func (n *node) close() {
	for i := len(n.closers) - 1; i >= 0; i-- {
		n.closers[i]()
	}
}

func (n *node) later(f func()) { n.closers = append(n.closers, f) }

func (n *node) start(ctx context.Context) error {
	var err error
	if n.dir, err = embedded.OpenDataDir(embedded.DataDirConfig{Path: n.s.Data}); err != nil {
		return err
	}
	n.later(func() { _ = n.dir.Close() })
	if short := n.dir.Short(); short != nil {
		n.log.Warn().Err(short).Msg("the disk is full: what is stored can be read, and nothing is taken until there is room")
	}
	if n.inputs, err = listenInputs(n.s, n.log); err != nil { // before the servers: a taken port shows at once
		return err
	}
	n.later(n.inputs.close)
	n.serve(ctx)
	n.inputs.starts(ops.Because(ops.Recovering, "NATS reads its streams, and ClickHouse its tables"))
	if n.servers, err = startServers(ctx, n.s, n.dir, n.log, n.inputs.opener.openNATS); err != nil {
		return err
	}
	n.later(n.servers.Stop)
	n.inputs.starts(ops.Because(ops.Starting, "topics and tables are declared, and the parts start"))
	if err := n.wire(ctx); err != nil {
		return err
	}
	addresses := n.servers.ClickHouse.Addresses(n.servers.NATS)
	addresses.NATS = n.servers.natsURL()
	n.inputs.name(&addresses)
	n.inputs.probe(n.probe)
	return embedded.WriteAddresses(n.dir.Path(), addresses)
}

// serve runs the gateway from now on: while the rest starts, it says so. It ends as a part, or where the start fails.
func (n *node) serve(ctx context.Context) {
	n.gateway = n.inputs.gateway(n.s, n.log)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- n.gateway.Run(running) }()
	wait := sync.OnceValue(func() error { return <-ended })
	n.later(func() {
		cancel()
		_ = wait()
	})
	n.served = partFunc(func(ctx context.Context) error {
		defer context.AfterFunc(ctx, cancel)()
		return wait()
	})
}

// connect connects to the servers as a part's user until the node ends, and opens the registry by it.
func (n *node) connect(ctx context.Context, user, name string) (*nats.Conn, *registry.Registry, error) {
	nc, err := n.servers.connect(user, name, n.log)
	if err != nil {
		return nil, nil, err
	}
	n.later(nc.Close)
	reg, err := registry.Open(ctx, nc)
	return nc, reg, err
}

// tables opens the tables by the account of a part until the node ends.
func (n *node) tables(user string, reg *registry.Registry) (*tables.DB, error) {
	e := n.servers.ClickHouse
	name, password := e.Account(user)
	dsn, err := withAccount(e.HTTPURL(), name, password, e.Database())
	if err != nil {
		return nil, err
	}
	db, err := openFixed(endpoints{clickhouse: dsn, clickhouseCA: n.s.ClickHouseCA})
	if err != nil {
		return nil, err
	}
	n.later(func() { _ = db.Close() })
	db.MeantFor(reg)
	return db, nil
}

// wire makes the parts over the servers.
func (n *node) wire(ctx context.Context) error {
	db, err := n.prepare(ctx)
	if err != nil {
		return err
	}
	if err := n.wireStoring(ctx); err != nil {
		return err
	}
	if err := n.wireTimers(ctx); err != nil {
		return err
	}
	return n.wireGateway(ctx, db)
}

// wireStoring makes router and sinks.
func (n *node) wireStoring(ctx context.Context) error {
	route, reg, err := n.connect(ctx, access.UserRouter, "router")
	if err != nil {
		return err
	}
	r, err := newRouter(ctx, route, reg, n.s.PIIKey, n.inputs.numbers.router(), n.log)
	if err != nil {
		return err
	}
	store, reg, err := n.connect(ctx, access.UserSink, "sink")
	if err != nil {
		return err
	}
	var mayPurge func() error
	if n.servers.NATS != nil {
		mayPurge = n.servers.NATS.Space
	}
	db, err := n.tables(access.UserSink, reg)
	if err != nil {
		return err
	}
	k, err := newSinks(ctx, store, reg, db, n.s, mayPurge, n.inputs.numbers, n.log)
	if err != nil {
		return err
	}
	if n.servers.ClickHouse.Engine().Kind == embedded.EngineRemote { // its own has what up writes down
		n.accounts = newOwnAccounts("up", n.log)
		n.accounts.nc = store
		n.accounts.of("clickhouse", grantsOf(db, access.ClickHouseUserOf(access.UserOperator)))
		n.accounts.look(ctx)
		k = append(k, n.accounts)
	}
	n.stages = []stage{{r}, k, {n.servers}}
	return nil
}

// wireTimers makes the dispatcher, with a connection of its own.
func (n *node) wireTimers(ctx context.Context) error {
	nc, reg, err := n.connect(ctx, access.UserTimers, "timers")
	if err != nil {
		return err
	}
	d, err := newDispatcher(ctx, nc, reg, n.s, n.log)
	if err != nil {
		return err
	}
	n.calls = d
	n.numbers = append(n.numbers, families.Dispatcher(d))
	return nil
}

// wireGateway makes the gateway over the servers, with connections of its own.
func (n *node) wireGateway(ctx context.Context, db *tables.DB) error {
	nc, reg, err := n.connect(ctx, access.UserGateway, "gateway")
	if err != nil {
		return err
	}
	second, err := n.servers.connect(access.UserGateway, "gateway reads", n.log)
	if err != nil {
		return err
	}
	n.later(second.Close)
	var storing func() error
	if n.servers.NATS != nil {
		storing = n.servers.NATS.Storing
	}
	pages, err := n.tables(access.UserGateway, reg)
	if err != nil {
		return err
	}
	parts, err := gatewayParts(ctx, nc, second, reg, db, pages, storing, n.s, n.inputs.numbers, n.log)
	if err != nil {
		return err
	}
	if n.servers.NATS != nil {
		parts.Reads.NATSDisk = func() (query.DiskUse, bool) { return diskUse(n.servers.NATS.Disk()) }
	}
	if n.inputs.http != nil && n.servers.NATS != nil {
		n.inputs.http.health.Synced(doctor.SyncAlways)
	}
	if e := n.servers.ClickHouse; e.ReaderPassword() != "" {
		parts.Reads.User, parts.Reads.Password = embedded.UserReader, e.ReaderPassword()
	}
	n.inputs.measure(&parts, reg, n.numbers...)
	n.pool = parts.Pool
	n.gateway.Open(parts)
	n.stages = append([]stage{{n.served, n.calls}}, n.stages...)
	return nil
}

// probe is why the node cannot do its work now. Both servers are asked at once: who asks has little patience.
func (n *node) probe(ctx context.Context) []ops.Reason {
	engine := make(chan error, 1)
	go func() { engine <- n.servers.ClickHouse.Healthy(ctx) }()
	var reasons []ops.Reason
	if n.servers.NATS != nil {
		reasons = ownNATSTrouble(n.servers.NATS.Healthy())
	}
	reasons = append(reasons, clickHouseTrouble(<-engine)...)
	return slices.Concat(reasons, stalled(n.pool), n.accounts.trouble())
}
