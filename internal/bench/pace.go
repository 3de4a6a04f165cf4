package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/producer"
)

// paceTick is how often a paced producer wakes: what is due is logged in a burst,
// as requests arrive. Shorter ticks would measure the scheduler.
const paceTick = time.Millisecond

// paced logs at a fixed rate, on a schedule that does not wait for the producer:
// what is late is logged all the same, so that no stall hides the calls it
// delays. It logs until the context ends and returns how many events.
//
// Of every sampleEvery-th call two times are kept: the call's own, and that from
// the instant the schedule had it.
type paced struct {
	ps          []*producer.Producer // in turn; none: the pacing alone
	gen         *generator
	rate        float64 // events a second
	sampleEvery int     // 0: none
	tick        time.Duration
	logged      int
	own, late   samples
}

func (w *paced) run(ctx context.Context) error {
	tick := time.NewTicker(w.tick)
	defer tick.Stop()
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for due := int(time.Since(began).Seconds() * w.rate); w.logged < due; w.logged++ {
			e := w.gen.event()
			if len(w.ps) == 0 {
				continue
			}
			p := w.ps[w.logged%len(w.ps)]
			if w.sampleEvery == 0 || w.logged%w.sampleEvery != 0 {
				p.Log(e)
				continue
			}
			call := time.Now()
			p.Log(e)
			done := time.Now()
			planned := began.Add(time.Duration(float64(w.logged) / w.rate * float64(time.Second)))
			w.own, w.late = append(w.own, done.Sub(call)), append(w.late, done.Sub(planned))
		}
	}
}

// startPaced runs one for each of cfg.Producers at rate in all, until the returned stop.
func startPaced(ctx context.Context, cfg *Config, rate float64, sampleEvery int) (stop func() ([]*paced, error), err error) {
	ps, err := pacedProducers(ctx, cfg)
	if err != nil {
		return nil, err
	}
	ws := make([]*paced, len(ps))
	for i, p := range ps {
		ws[i] = &paced{ps: []*producer.Producer{p}, gen: newGenerator(uint64(i+1), cfg.EventBytes), rate: rate / float64(len(ps)), sampleEvery: sampleEvery, tick: paceTick}
	}
	stopAll := runPaced(ctx, ws, ps)
	return func() ([]*paced, error) { return ws, stopAll() }, nil
}

// startLoad runs one for all cfg.Producers together, so that a tick wakes the process
// once: waking is not what the load is to measure.
func startLoad(ctx context.Context, cfg *Config, rate float64) (ps []*producer.Producer, stop func() error, err error) {
	if ps, err = pacedProducers(ctx, cfg); err != nil {
		return nil, nil, err
	}
	return ps, runPaced(ctx, []*paced{pacedLoad(cfg, rate, ps)}, ps), nil
}

func pacedLoad(cfg *Config, rate float64, ps []*producer.Producer) *paced {
	return &paced{ps: ps, gen: newGenerator(1, cfg.EventBytes), rate: rate, tick: loadTick}
}

// pacedProducers connects cfg.Producers, each by its own connection and with the policy
// drop_newest, so that none waits.
func pacedProducers(ctx context.Context, cfg *Config) (ps []*producer.Producer, err error) {
	for i := range cfg.Producers {
		p, err := producer.Connect(ctx, cfg.NATSURL, producer.Config{Topic: cfg.topicName(i % cfg.Topics), Stderr: io.Discard})
		if err != nil {
			return nil, errors.Join(err, closeProducers(ctx, ps))
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// runPaced runs all until the returned stop, which closes the producers: all of them are
// connected by now, so the load of some was not a reason for others to wait.
func runPaced(ctx context.Context, ws []*paced, ps []*producer.Producer) (stop func() error) {
	running, cancel := context.WithCancel(ctx)
	g, running := errgroup.WithContext(running)
	for _, w := range ws {
		g.Go(func() error { return w.run(running) })
	}
	return func() error {
		cancel()
		return errors.Join(g.Wait(), closeProducers(ctx, ps))
	}
}

func closeProducers(ctx context.Context, ps []*producer.Producer) (err error) {
	closing, done := context.WithTimeout(ctx, closeTime)
	defer done()
	for _, p := range ps {
		if e := p.Close(closing); e != nil && err == nil {
			err = fmt.Errorf("bench: what was logged was not accepted within %s after the last of it: %w", closeTime, e)
		}
	}
	return err
}

// closeTime bounds the wait for the answers to what was logged, once nothing more is:
// the buffers of 256 producers at 40 MB/s.
const closeTime = 2 * time.Minute

// pacingCPU is the CPU in microseconds an event that making the events of startLoad on
// their schedule takes by itself, measured for a time: it is neither an application's nor a
// producer's.
func pacingCPU(ctx context.Context, cfg *Config, rate float64, during time.Duration) (float64, error) {
	running, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	w := pacedLoad(cfg, rate, nil)
	before := cpuOf(os.Getpid())
	if err := w.run(running); err != nil {
		return 0, err
	}
	return (cpuOf(os.Getpid()) - before) * 1e6 / max(1, float64(w.logged)), context.Cause(ctx)
}
