package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/ops"
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
// collections. What a gateway keeps is small beside the requests that it reads and
// forgets. On one core at full load (internal/bench/suite --only inputs) 400 in place of
// Go's 100 took 12 to 18 % of the CPU away: OTLP 4.13 to 3.56 microseconds an event,
// NDJSON 4.06 to 3.50, bulk 4.94 to 4.06.
//
// gatewayMemoryBytes is the memory of Go's runtime from which that does not matter: Go
// collects as often as it takes to stay below. It is three quarters of the 512 MiB that
// the Helm chart allows a gateway.
const (
	gatewayGCPercent   = 400
	gatewayMemoryBytes = 384 << 20
)

// collectLess sets both, unless the user did.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gatewayGCPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(gatewayMemoryBytes)
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
	working, end := draining(ctx, s, log, in.drain, in.reasons)
	defer end()
	return runStages(working, s.ShutdownTimeout, stage{g}, stage{partFunc(func(ctx context.Context) error {
		ready, err := one.begin(ctx, func(ctx context.Context) error { return one.openGateway(ctx, in, g) })
		if ready {
			<-ctx.Done()
		}
		return err
	})}, stage{in.numbers.exporter(s, log)})
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
	o.accounts.ofGateway(o.d, db, pages)
	parts.Background = append(parts.Background, reads.Run, o.own.Run, o.accounts.Run)
	in.probe(func(context.Context) []ops.Reason {
		return slices.Concat(natsTrouble(nc), stalled(parts.Pool), reads.trouble(), o.lacks())
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
