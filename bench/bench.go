package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

// Run measures the pipeline, then the ceiling. The streams and the database must
// be empty of the bench's topics.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg = cfg.withDefaults()
	topics, err := declare(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	res := &Result{
		Events: cfg.Events, Producers: cfg.Producers, Topics: cfg.Topics, Lanes: cfg.Lanes, EventBytes: cfg.EventBytes,
		Inserts: cfg.Inserts, CPUs: runtime.NumCPU(), GoVersion: runtime.Version(),
	}
	if res.EngineVersion, err = cfg.DB.Ping(ctx); err != nil {
		return nil, err
	}
	if err := pipeline(ctx, &cfg, topics, res); err != nil {
		return nil, fmt.Errorf("bench: pipeline: %w", err)
	}
	if err := sizes(ctx, &cfg, res); err != nil {
		return nil, err
	}
	if err := ceiling(ctx, &cfg, topics, res); err != nil {
		return nil, fmt.Errorf("bench: ceiling: %w", err)
	}
	res.Ratio = res.EventsPerSecond / res.CeilingEventsPerSecond
	return res, nil
}

// topicName is the nth topic of the bench.
func topicName(n int) string { return "bench_" + strconv.Itoa(n) }

func declare(ctx context.Context, cfg *Config) ([]schemas.Topic, error) {
	topics := make([]schemas.Topic, cfg.Topics)
	for i := range topics {
		t := schemas.NewTopic(topicName(i), schemas.Field{Name: "duration_ms", Type: schemas.TypeFloat64}, schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality})
		t.Lanes = cfg.Lanes
		var err error
		if topics[i], _, err = cfg.Registry.Apply(ctx, t, false); err != nil {
			return nil, err
		}
		if err := cfg.DB.Ensure(ctx, &topics[i]); err != nil {
			return nil, err
		}
	}
	return topics, nil
}

// pipeline runs the events from Log to the last row.
func pipeline(ctx context.Context, cfg *Config, topics []schemas.Topic, res *Result) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel(nil)
	run := func(part string, run func(context.Context) error) {
		parts.Go(func() {
			pprof.Do(ctx, pprof.Labels(labelPart, part), func(ctx context.Context) {
				if err := run(ctx); err != nil {
					cancel(fmt.Errorf("%s: %w", part, err))
				}
			})
		})
	}
	r, err := router.New(ctx, cfg.NATS, router.Config{Registry: cfg.Registry})
	if err != nil {
		return err
	}
	s, err := sinks.New(ctx, cfg.NATS, sinks.Config{Registry: cfg.Registry, DB: cfg.DB, Inserts: cfg.Inserts})
	if err != nil {
		return err
	}
	run("router", r.Run)
	run("sink", s.Run)
	if err := warm(ctx, cfg, topics); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}

	watch, err := watchEngine(ctx, cfg)
	if err != nil {
		return err
	}
	meter, err := startCPU(cfg.EnginePID)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := produce(ctx, cfg); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	res.AcceptedSeconds = time.Since(began).Seconds()
	if err := waitStored(ctx, cfg, topics, cfg.Events+len(topics)*cfg.Lanes); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	res.StoredSeconds = time.Since(began).Seconds()
	res.EventsPerSecond = float64(cfg.Events) / res.StoredSeconds
	if res.CPUMicros, res.PeakRSSBytes, err = meter.stop(cfg.Events, cfg.Profile); err != nil {
		return err
	}
	res.Engine, err = watch.done(ctx, cfg)
	return err
}

// warm sends one event down each lane and waits for it, so that the clock does
// not count the making of shards and consumers.
func warm(ctx context.Context, cfg *Config, topics []schemas.Topic) error {
	for i := range topics {
		p, err := producer.Connect(ctx, cfg.NATSURL, producer.Config{Topic: topics[i].Name})
		if err != nil {
			return err
		}
		for lane := range cfg.Lanes {
			e := schemas.Event{Message: "warm", UserID: userOf(&topics[i], lane)}
			if err := p.Publish(ctx, e); err != nil {
				return err
			}
		}
		if err := p.Close(ctx); err != nil {
			return err
		}
	}
	return waitStored(ctx, cfg, topics, len(topics)*cfg.Lanes)
}

// userOf finds a user of the lane.
func userOf(t *schemas.Topic, lane int) string {
	for i := 0; ; i++ {
		if u := "warm-" + strconv.Itoa(i); schemas.NewLaneHash().Add(u).Lane(t.Lanes) == lane {
			return u
		}
	}
}

// produce logs all events and returns when the last is accepted.
func produce(ctx context.Context, cfg *Config) error {
	g, ctx := errgroup.WithContext(ctx)
	for n := range cfg.Producers {
		g.Go(func() (err error) {
			pprof.Do(ctx, pprof.Labels(labelPart, "producer"), func(ctx context.Context) {
				err = produceOne(ctx, cfg, n)
			})
			return err
		})
	}
	return g.Wait()
}

func produceOne(ctx context.Context, cfg *Config, n int) error {
	ps := make([]*producer.Producer, cfg.Topics)
	for i := range ps {
		var err error
		if ps[i], err = producer.Connect(ctx, cfg.NATSURL, producer.Config{Topic: topicName(i), Policy: producer.Block}); err != nil {
			return err
		}
	}
	gen := newGenerator(uint64(n+1), cfg.EventBytes)
	share := cfg.Events / cfg.Producers
	if n == 0 {
		share += cfg.Events % cfg.Producers
	}
	for i := range share {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ps[i%len(ps)].Log(gen.event())
	}
	for _, p := range ps {
		if err := p.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pollStored is how often the table is asked; a thirtieth of a second's run.
const pollStored = 30 * time.Millisecond

func waitStored(ctx context.Context, cfg *Config, topics []schemas.Topic, want int) error {
	tick := time.NewTicker(pollStored)
	defer tick.Stop()
	for {
		got := 0
		for i := range topics {
			var n uint64
			if err := cfg.DB.Conn().QueryRow(ctx, "SELECT count() FROM "+schemas.QuotedTable(cfg.DB.Database, topics[i].Name)).Scan(&n); err != nil {
				return err
			}
			got += int(n)
		}
		cfg.Progress("pipeline", got, want)
		if got >= want {
			if got > want {
				return fmt.Errorf("%d rows are stored, %d events were logged", got, want)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
