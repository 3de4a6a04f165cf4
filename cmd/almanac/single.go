package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/ops/families"
	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// single is one part alone in a process.
type single struct {
	name string
	s    *settings
	d    endpoints
	log  zerolog.Logger
	nc   *nats.Conn // of the start under way
	own  *ownRights // of its user
	// accounts are those that it has at ClickHouse.
	accounts *ownAccounts
	parts    []part
	probe    func(context.Context) []ops.Reason
	// servers are those that this part needs: /metrics names the ones that are away.
	servers query.Servers
	// starts hears what the start waits for.
	starts  func(ops.Reason)
	counts  *processNumbers
	numbers []metrics.Source
	closers []func()
}

// newSingle reads the settings of a part and finds its servers.
func (a *app) newSingle(cmd *cobra.Command, name string, need needed) (*single, error) {
	s, err := load(cmd)
	if err != nil {
		return nil, err
	}
	d, err := findEndpoints(s, need)
	if err != nil {
		return nil, err
	}
	log := s.logger(a.stderr)
	abortOnPanic()
	outlive(newReloader(cmd, s, log).reload)
	return &single{name: name, s: s, d: d, log: log, counts: newNumbers(log), starts: func(ops.Reason) {}}, nil
}

// runSingle reads the settings of a part, starts it and runs it.
func (a *app) runSingle(ctx context.Context, cmd *cobra.Command, name string, need needed, start func(context.Context, *single) error) error {
	one, err := a.newSingle(cmd, name, need)
	if err != nil {
		return err
	}
	return one.run(ctx, func(ctx context.Context) error { return start(ctx, one) })
}

// dial connects to NATS until the start fails or the part ends.
func (o *single) dial(name string) (*nats.Conn, error) {
	nc, err := streams.Connect(o.d.nats, append(natsOptions(o.s, o.d, name), watched(o.log)...)...)
	if err == nil {
		o.later(nc.Close)
	} else {
		o.servers.Found(query.ServerNATS, err)
	}
	return nc, err
}

// setup makes streams and bucket where they are missing, for a part that needs NATS alone.
// It is ready while those of led have leaders.
func (o *single) setup(ctx context.Context, led ...string) (*registry.Registry, error) {
	o.probe = func(ctx context.Context) []ops.Reason { return leaderTrouble(ctx, o.nc, led...) }
	return registry.Setup(ctx, o.nc, streamLimits(o.s, schemas.DefaultStreamLimits))
}

func (o *single) later(f func()) { o.closers = append(o.closers, f) }

func (o *single) close() {
	o.servers.UseNATS(nil)
	o.servers.UseClickHouse(nil)
	for i := len(o.closers) - 1; i >= 0; i-- {
		o.closers[i]()
	}
	o.closers = nil
}

// startPause is the time between two attempts to start while servers are not there yet. There is no last attempt.
const startPause = time.Second

// run starts a part, however long its servers take to appear, and runs it
// until a signal. Without --http it opens no listener: several parts share a
// machine.
func (o *single) run(ctx context.Context, start func(context.Context) error) error {
	o.s.HTTP = cmp.Or(o.s.HTTP, settingOff)
	var h *httpServer
	health := ops.New(ops.Config{}) // without --http only the watchdog of systemd asks it
	var asked stage
	if o.s.HTTP != settingOff || o.s.OTLPExport != "" { // who reads this process's numbers hears since when a server is away
		asked = stage{partFunc(o.look)}
	}
	if o.s.HTTP != settingOff {
		d, err := newOpener(o.s, o.log)
		if err != nil {
			return err
		}
		defer d.close()
		if h, err = listenHTTP(d, o.counts); err != nil {
			return err
		}
		defer h.close()
		health, asked = h.health, append(asked, h, d.tokens)
	}
	if h == nil { // the page of --http has it, and the export as well
		o.counts.Read(families.Ready(health.Ready, health.Draining))
	}
	o.counts.Read(families.Servers(o.servers.Ask))
	o.starts = health.Starts
	defer o.close()
	working, end := draining(ctx, o.s, o.log, health.Drain, health.Reasons)
	defer end()
	return runStages(working, o.s.ShutdownTimeout, stage{partFunc(func(ctx context.Context) error {
		if ready, err := o.begin(ctx, start); !ready {
			return err
		}
		health.Probe(func(ctx context.Context) []ops.Reason { return append(o.probe(ctx), o.lacks()...) })
		o.counts.Read(o.numbers...)
		return runStages(ctx, o.s.ShutdownTimeout, append(o.parts, o.own, o.accounts))
	})}, append(asked, o.counts.exporter(o.s, o.log)))
}

// look asks the servers of the part whether they are there, now and then until ctx ends: /metrics is to say since when one is away, and not since
// when it was scraped.
func (o *single) look(ctx context.Context) error {
	for backoff.Sleep(ctx, lookEvery) == nil {
		o.servers.Ask(ctx)
	}
	return nil
}

// begin starts the part, however long its servers take to appear. It is not ready
// where ctx ended first, or the part can never start.
func (o *single) begin(ctx context.Context, start func(context.Context) error) (ready bool, err error) {
	again := newRationer()
	o.own, o.accounts = newOwnRights(o.name, o.log), newOwnAccounts(o.name, o.log)
	for {
		if o.nc, err = o.dial(o.name); err == nil {
			o.servers.UseNATS(o.nc)
			o.own.by(o.nc)
			o.own.look(ctx)
			o.accounts.nc = o.nc
			err = start(ctx)
		}
		if err == nil {
			o.log.Info().Str("part", o.name).Msg("ready")
			tellReady(o.log)
			return true, nil
		}
		o.servers.Ask(ctx) // what is away is known before it is asked no longer
		o.close()
		if ctx.Err() != nil {
			return false, nil
		}
		if !passing(err) {
			return false, err
		}
		why := waitsFor(err)
		for _, r := range o.lacks() {
			why.Says += "; " + r.String()
		}
		o.starts(why)
		if more, ok := again.pass(err.Error()); ok {
			o.log.Warn().Err(err).Int("more", more).Msg("not ready yet, trying again")
		}
		if backoff.Sleep(ctx, startPause) != nil {
			return false, nil
		}
	}
}

// lacks is what its user of NATS and its accounts of ClickHouse may not do.
func (o *single) lacks() []ops.Reason { return append(o.own.trouble(), o.accounts.trouble()...) }

// partFunc is a function as a part.
type partFunc func(context.Context) error

// Run calls it.
func (f partFunc) Run(ctx context.Context) error { return f(ctx) }

// passing says whether a failed start may succeed by itself later.
func passing(err error) bool {
	return !errors.As(err, new(configError)) && !errors.Is(err, streams.ErrUnsafe) && !errors.Is(err, tables.ErrDSN) &&
		!errors.Is(err, tables.ErrOldServer) && !errors.Is(err, schemas.ErrFormat) && !errors.Is(err, nats.ErrAuthorization)
}
