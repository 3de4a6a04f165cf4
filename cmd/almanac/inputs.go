package main

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/ops/families"
	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/registry"
)

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

// reasons are why the process cannot do its work. One without --http is not asked.
func (in *inputs) reasons(ctx context.Context) []ops.Reason {
	if in.http == nil {
		return nil
	}
	return in.http.health.Reasons(ctx)
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
	cfg.OnLimit, cfg.OnTail = in.numbers.inputs().Limited, in.numbers.inputs().Tail
	in.shippers.configure(&cfg, s, log)
	cfg.Tokens, cfg.Unasked, cfg.TLS = in.opener.tokens, in.opener.unasked(), in.opener.secure()
	cfg.InsecureHosts = s.InsecureHosts
	cfg.OnRefused, cfg.OnRequest = in.numbers.refused(log), in.numbers.inputs().Request
	return gateway.New(cfg)
}

// drainMargin is how much of shutdown_timeout is left when requests under way are cut
// off: for the producers to flush.
const drainMargin = 6 * time.Second
