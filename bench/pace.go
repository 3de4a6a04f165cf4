package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	p           *producer.Producer
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
			if w.sampleEvery == 0 || w.logged%w.sampleEvery != 0 {
				w.p.Log(e)
				continue
			}
			call := time.Now()
			w.p.Log(e)
			done := time.Now()
			planned := began.Add(time.Duration(float64(w.logged) / w.rate * float64(time.Second)))
			w.own, w.late = append(w.own, done.Sub(call)), append(w.late, done.Sub(planned))
		}
	}
}

// startPaced runs cfg.Producers of them at rate in all, until the returned stop.
func startPaced(ctx context.Context, cfg *Config, rate float64, sampleEvery int) (stop func() ([]*paced, error), err error) {
	ws, stopAll, err := startPacedAt(ctx, cfg, rate, sampleEvery, paceTick)
	return func() ([]*paced, error) { return ws, stopAll() }, err
}

// startPacedAt is startPaced with the producers at hand while they run, and each
// waking once a tick. Every one has its own connection and the policy drop_newest,
// so none waits.
func startPacedAt(ctx context.Context, cfg *Config, rate float64, sampleEvery int, tick time.Duration) (ws []*paced, stop func() error, err error) {
	running, cancel := context.WithCancel(ctx)
	g, running := errgroup.WithContext(running)
	stop = func() error {
		cancel()
		err := g.Wait()
		closing, done := context.WithTimeout(ctx, closeTime)
		defer done()
		for _, w := range ws {
			if e := w.p.Close(closing); e != nil && err == nil {
				err = fmt.Errorf("bench: what was logged was not accepted within %s after the last of it: %w", closeTime, e)
			}
		}
		return err
	}
	for i := range cfg.Producers {
		p, err := producer.Connect(ctx, cfg.NATSURL, producer.Config{Topic: cfg.topicName(i % cfg.Topics), Stderr: io.Discard})
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		ws = append(ws, &paced{p: p, gen: newGenerator(uint64(i+1), cfg.EventBytes), rate: rate / float64(cfg.Producers), sampleEvery: sampleEvery, tick: tick})
	}
	for _, w := range ws { // all are connected: the load of some is not a reason for others to wait
		g.Go(func() error { return w.run(running) })
	}
	return ws, stop, nil
}

// closeTime bounds the wait for the answers to what was logged, once nothing more is:
// the buffers of 256 producers at 40 MB/s.
const closeTime = 2 * time.Minute
