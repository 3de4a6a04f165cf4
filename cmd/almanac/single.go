package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/backoff"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// single is one part alone in a process.
type single struct {
	parts   []part
	probe   func(context.Context) []string
	closers []func()
}

func (o *single) later(f func()) { o.closers = append(o.closers, f) }

func (o *single) close() {
	for i := len(o.closers) - 1; i >= 0; i-- {
		o.closers[i]()
	}
	o.closers = nil
}

// startPause is how long a part waits for servers that are not there yet.
const startPause = time.Second

// runOne starts a part, however long its servers take to appear, and runs it
// until a signal. Without --http it opens no listener: several parts share a
// machine.
func (a *app) runOne(ctx context.Context, s *settings, name string, start func(context.Context, zerolog.Logger, *single) error) error {
	log := s.logger(a.stderr)
	s.HTTP = cmp.Or(s.HTTP, httpOff)
	h, err := listenHTTP(s)
	if err != nil {
		return err
	}
	one := &single{}
	defer func() { one.close() }()
	parts := []part{}
	if h != nil {
		defer h.close()
		parts = append(parts, h)
	}
	parts = append(parts, partFunc(func(ctx context.Context) error {
		if ready, err := one.begin(ctx, log, name, start); !ready {
			return err
		}
		if h != nil {
			h.probe(one.probe)
		}
		return runParts(ctx, s.ShutdownTimeout, one.parts...)
	}))
	return runParts(ctx, s.ShutdownTimeout, parts...)
}

// begin starts the part, however long its servers take to appear. It is not ready
// where ctx ended first, or the part can never start.
func (o *single) begin(ctx context.Context, log zerolog.Logger, name string, start func(context.Context, zerolog.Logger, *single) error) (ready bool, err error) {
	again := newRationer()
	for {
		err := start(ctx, log, o)
		if err == nil {
			log.Info().Str("part", name).Msg("ready")
			return true, nil
		}
		o.close()
		if ctx.Err() != nil {
			return false, nil
		}
		if !passing(err) {
			return false, err
		}
		if more, ok := again.pass(err.Error()); ok {
			log.Warn().Err(err).Int("more", more).Msg("not ready yet, trying again")
		}
		_ = backoff.Sleep(ctx, startPause) // the next start asks ctx
	}
}

// partFunc is a function as a part.
type partFunc func(context.Context) error

// Run calls it.
func (f partFunc) Run(ctx context.Context) error { return f(ctx) }

// passing says whether a failed start may succeed by itself later.
func passing(err error) bool {
	return !errors.As(err, new(configError)) && !errors.Is(err, streams.ErrUnsafe) && !errors.Is(err, tables.ErrDSN) &&
		!errors.Is(err, tables.ErrOldServer) && !errors.Is(err, nats.ErrAuthorization)
}

// natsTrouble is why a connection cannot be used now.
func natsTrouble(nc *nats.Conn) []string {
	if nc.IsConnected() {
		return nil
	}
	return []string{"no connection to NATS, trying again"}
}
