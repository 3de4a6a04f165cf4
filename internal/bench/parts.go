package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/sinks"
)

// parts are a router and sinks that run in this process.
type parts struct {
	// ctx ends when a part fails, with its error as the cause.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	conns  []*nats.Conn
}

// startParts starts both, each on a connection of its own, as every program does
// that runs them.
func startParts(ctx context.Context, cfg *Config) (p *parts, err error) {
	p = &parts{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	route, err := p.connect(cfg)
	if err != nil {
		return nil, err
	}
	store, err := p.connect(cfg)
	if err != nil {
		return nil, err
	}
	r, err := router.New(ctx, route, router.Config{Registry: cfg.Registry})
	if err != nil {
		return nil, err
	}
	s, err := sinks.New(ctx, store, sinks.Config{Registry: cfg.Registry, DB: cfg.DB, Inserts: cfg.Inserts, Linger: cfg.linger, Housekeeping: cfg.housekeeping})
	if err != nil {
		return nil, err
	}
	j, err := retention.New(ctx, store, retention.Config{Registry: cfg.Registry, DB: cfg.DB, Owns: func() bool { return s.Owns("janitor") }, Every: cfg.housekeeping})
	if err != nil {
		return nil, err
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.run("router", r.Run)
	p.run("sink", s.Run)
	p.run("janitor", j.Run)
	return p, nil
}

// connect opens one more connection.
func (c *Config) connect() (*nats.Conn, error) {
	if c.Connect != nil {
		return c.Connect()
	}
	return nats.Connect(c.NATSURL)
}

func (p *parts) connect(cfg *Config) (*nats.Conn, error) {
	nc, err := cfg.connect()
	if err == nil {
		p.conns = append(p.conns, nc)
	}
	return nc, err
}

func (p *parts) close() {
	for _, nc := range p.conns {
		nc.Close()
	}
}

func (p *parts) run(name string, run func(context.Context) error) {
	p.wg.Go(func() {
		pprof.Do(p.ctx, pprof.Labels(labelPart, name), func(ctx context.Context) {
			if err := run(ctx); err != nil {
				p.cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	})
}

// failed is err with what ended the parts, if anything did.
func (p *parts) failed(err error) error {
	if err == nil || p.ctx.Err() == nil {
		return err
	}
	return errors.Join(context.Cause(p.ctx), err)
}

// stop ends the parts and waits.
func (p *parts) stop() {
	p.cancel(nil)
	p.wg.Wait()
	p.close()
}
