package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"

	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/sinks"
)

// parts are a router and sinks that run in this process.
type parts struct {
	// ctx ends when a part fails, with its error as the cause.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

func startParts(ctx context.Context, cfg *Config) (*parts, error) {
	r, err := router.New(ctx, cfg.NATS, router.Config{Registry: cfg.Registry})
	if err != nil {
		return nil, err
	}
	s, err := sinks.New(ctx, cfg.NATS, sinks.Config{Registry: cfg.Registry, DB: cfg.DB, Inserts: cfg.Inserts})
	if err != nil {
		return nil, err
	}
	p := &parts{}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.run("router", r.Run)
	p.run("sink", s.Run)
	return p, nil
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
}
