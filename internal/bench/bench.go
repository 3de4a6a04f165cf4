package bench

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
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

func declare(ctx context.Context, cfg *Config) ([]schemas.Topic, error) {
	topics := make([]schemas.Topic, cfg.Topics)
	for i := range topics {
		t := benchTopic(cfg.topicName(i))
		t.Lanes, t.SQLFresh = cfg.Lanes, max(cfg.sqlFresh, 0)
		if cfg.rotateRows > 0 {
			t.Rotate = schemas.Rotation{Rows: cfg.rotateRows}
		}
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
	parts, err := startParts(ctx, cfg)
	if err != nil {
		return err
	}
	err = parts.failed(pipelineOn(parts.ctx, cfg, topics, res))
	parts.stop()
	return err
}

func pipelineOn(ctx context.Context, cfg *Config, topics []schemas.Topic, res *Result) error {
	if err := warm(ctx, cfg, topics); err != nil {
		return err
	}
	watch, err := watchEngine(ctx, cfg)
	if err != nil {
		return err
	}
	meter, err := startCPU(cfg.EnginePID)
	if err != nil {
		return err
	}
	if res.AcceptedSeconds, res.StoredSeconds, err = load(ctx, cfg, topics); err != nil {
		return err
	}
	res.EventsPerSecond = float64(cfg.Events) / res.StoredSeconds
	if res.CPUMicros, res.PeakRSSBytes, err = meter.stop(cfg.Events, cfg.Profile); err != nil {
		return err
	}
	res.Engine, err = watch.done(ctx, cfg)
	return err
}

// load runs cfg's events through parts that run already, and returns the seconds
// until the last was accepted and until the last row could be selected.
func load(ctx context.Context, cfg *Config, topics []schemas.Topic) (accepted, stored float64, err error) {
	before, err := storedRows(ctx, cfg, topics)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := produce(ctx, cfg); err != nil {
		return 0, 0, err
	}
	accepted = time.Since(began).Seconds()
	err = waitStored(ctx, cfg, topics, before+cfg.Events)
	return accepted, time.Since(began).Seconds(), err
}

// warm sends one event down each lane and waits for it, so that the clock does
// not count the making of shards and consumers.
func warm(ctx context.Context, cfg *Config, topics []schemas.Topic) error {
	before, err := storedRows(ctx, cfg, topics)
	if err != nil {
		return err
	}
	for i := range topics {
		p, err := producer.Connect(ctx, cfg.NATSURL, producer.Config{Topic: topics[i].Name, Policy: producer.Block})
		if err != nil {
			return err
		}
		for lane := range cfg.Lanes {
			p.Log(schemas.Event{Message: "warm", UserID: userOf(&topics[i], lane)})
		}
		if err := p.Close(ctx); err != nil {
			return err
		}
	}
	return waitStored(ctx, cfg, topics, before+len(topics)*cfg.Lanes)
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
	names := make([]string, cfg.Topics)
	for i := range names {
		names[i] = cfg.topicName(i)
	}
	share := cfg.Events / cfg.Producers
	if n == 0 {
		share += cfg.Events % cfg.Producers
	}
	gen := newGenerator(uint64(n+1), cfg.EventBytes)
	gen.months = lastMonths(time.Now(), cfg.months)
	return produceTo(ctx, cfg.NATSURL, names, gen.events(share))
}

// produceTo logs events to the topics in turn.
func produceTo(ctx context.Context, natsURL string, topics []string, events iter.Seq[schemas.Event]) error {
	ps := make([]*producer.Producer, len(topics))
	for i, topic := range topics {
		var err error
		if ps[i], err = producer.Connect(ctx, natsURL, producer.Config{Topic: topic, Policy: producer.Block}); err != nil {
			return err
		}
	}
	i := 0
	for e := range events {
		if i%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		ps[i%len(ps)].Log(e)
		i++
	}
	for _, p := range ps {
		if err := p.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// The tables are asked every pollStored; less often, at least every pollLimit, where
// asking would take more than a twentieth of the time: it costs ClickHouse 3 to 4 ms of
// CPU while it inserts. By so much, a fiftieth of a run, the end may be seen too late.
const (
	pollStored = 30 * time.Millisecond
	pollLimit  = 200 * time.Millisecond
	pollShare  = 20
)

// storedWait is how long no row may come while some are missing: twelve times the
// default sql_fresh, which a topic of a bench has or less.
const storedWait = 2 * time.Minute

func waitStored(ctx context.Context, cfg *Config, topics []schemas.Topic, want int) error {
	last, grew := -1, time.Now()
	for {
		asked := time.Now()
		got, err := storedRows(ctx, cfg, topics)
		if err != nil {
			return err
		}
		if got != last {
			last, grew = got, asked
		}
		if got < want && asked.Sub(grew) > storedWait {
			return fmt.Errorf("%d of %d rows are stored, and none came for %s", got, want, storedWait)
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
			return context.Cause(ctx)
		case <-time.After(min(max(pollStored, pollShare*time.Since(asked)), pollLimit)):
		}
	}
}

// storedRows counts the topics' rows by what ClickHouse keeps of each table. A
// SELECT count() would look at every part: 2.9 ms of its CPU with 2,000 of them
// against 0.7 with 10, where this is 1.2 with either.
// One statement counts all topics: one each would be 12 ms of CPU with ten of them, which
// asked every pollStored is a third of a processor. It runs in one thread and is not
// compiled, so that it costs the pipeline no more than that.
func storedRows(ctx context.Context, cfg *Config, topics []schemas.Topic) (int, error) {
	names := make([]string, len(topics))
	for i := range topics {
		names[i] = topics[i].Name
	}
	var n uint64
	if err := cfg.DB.Conn().QueryRow(ctx, "SELECT sum(assumeNotNull(total_rows)) FROM system.tables WHERE database = ? AND name IN ? SETTINGS max_threads = 1, compile_expressions = 0", cfg.DB.Database, names).Scan(&n); err != nil {
		return 0, fmt.Errorf("bench: counting rows: %w", err)
	}
	return int(n), nil
}
