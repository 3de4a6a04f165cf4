package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// visible is how long an accepted event takes to be seen, at half of the rate
// just measured. Marked events are published on a schedule that does not wait
// for answers; from its acknowledgement each is asked for until it is there.
func visible(ctx context.Context, s *Suite) ([]Figure, error) {
	var byQuery, bySQL samples
	var rate float64
	var dropped uint64
	err := s.underLoad(ctx, func(ctx context.Context, cfg *Config, full float64) error {
		rate = full / 2
		stop, err := startPaced(ctx, cfg, rate, 0)
		if err != nil {
			return err
		}
		byQuery, bySQL, err = s.watchMarks(ctx, cfg)
		ws, e := stop()
		for _, w := range ws {
			dropped += w.ps[0].Stats().DroppedTotal()
		}
		return errors.Join(err, e)
	})
	if err != nil {
		return nil, err
	}
	how := "half of the rate just measured (%s events/s); %d marked events, five a second on a schedule, first those asked for by query, each again and again from its acknowledgement, then those by SQL, all that wait in one statement: p50 %.0f, p90 %.0f, most %.0f ms, %d not within %s; the load dropped %d events"
	figure := func(name, what string, v samples, bar float64) Figure {
		return atMost(name, what, millis(v.quantile(0.99)), unitMillis, bar, how, count(int(rate)), len(v), millis(v.quantile(0.5)), millis(v.quantile(0.9)), millis(v.quantile(1)), v.above(markTimeout), markTimeout, dropped).
			raw("p50_ms", millis(v.quantile(0.5)), "p90_ms", millis(v.quantile(0.9)), "p99_ms", millis(v.quantile(0.99)), "max_ms", millis(v.quantile(1)))
	}
	return []Figure{
		figure("visible_query", "accepted until query shows it, 99th percentile at half load", byQuery, 100),
		figure("visible_sql", "accepted until plain SQL shows it, 99th percentile at half load", bySQL, 1500),
	}, nil
}

const (
	markEvery = 200 * time.Millisecond
	// marks are those of each phase: half a minute.
	marks = 150
	// markTimeout bounds the wait for one mark; ten times the slacker bar.
	markTimeout = 15 * time.Second
	// queryPause and sqlPause are between two questions: a twentieth of the bars, so
	// that asking is not the load.
	queryPause = 5 * time.Millisecond
	sqlPause   = 75 * time.Millisecond
	// markReaders ask at once, as so many people who look at a screen would: when
	// answers are late, marks that wait must not become a load that grows with the
	// delay. The wait for a turn counts as the mark's. By SQL one reader asks for all
	// that wait (asking.go). Those by query and those by SQL come one phase after the
	// other, so that neither is the other's load.
	markReaders = 4
)

func (s *Suite) watchMarks(ctx context.Context, cfg *Config) (byQuery, bySQL samples, err error) {
	nc, err := nats.Connect(cfg.NATSURL) // a reader is another process
	if err != nil {
		return nil, nil, err
	}
	defer nc.Close()
	reg, err := registry.Open(ctx, nc)
	if err != nil {
		return nil, nil, err
	}
	own := *cfg
	own.NATS, own.Registry = nc, reg
	r, stop, err := following(&own)
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	p, err := producer.Connect(ctx, cfg.NATSURL, producer.Config{Topic: cfg.topicName(0), Policy: producer.Block, Linger: -1})
	if err != nil {
		return nil, nil, err
	}
	defer func() { // while the load goes on: no caller waits for its end
		closing, done := context.WithTimeout(ctx, markTimeout)
		defer done()
		err = errors.Join(err, p.Close(closing))
	}()
	phase := func(name string, from int, seen awaitMark) (v samples, err error) {
		var (
			wg sync.WaitGroup
			mu sync.Mutex
		)
		tick := time.NewTicker(markEvery)
		defer tick.Stop()
		n := cmp.Or(s.markCount, s.size(marks))
		for i := range n {
			s.Progress("", name, i, n)
			select {
			case <-ctx.Done():
				wg.Wait()
				return nil, context.Cause(ctx)
			case <-tick.C:
			}
			wg.Go(func() {
				took, e := mark(ctx, p, from+i, seen)
				mu.Lock()
				defer mu.Unlock()
				if e == nil {
					v = append(v, took)
				} else if err == nil {
					err = e
				}
			})
		}
		wg.Wait()
		return v, err
	}
	if byQuery, err = phase("visible by query", 0, cfg.seenByQuery(r)); err != nil {
		return nil, nil, err
	}
	sql := newAsking(cfg.askBySQL, sqlPause)
	asking, stop := context.WithCancel(ctx)
	asked := make(chan struct{})
	go func() { defer close(asked); sql.run(asking) }()
	bySQL, err = phase("visible by SQL", max(marks, s.markCount), sql.seen)
	stop()
	<-asked
	return byQuery, bySQL, err
}

// awaitMark waits until a mark is there.
type awaitMark func(ctx context.Context, at time.Time, trace string) error

// seenByQuery asks for each mark by itself, again and again.
func (c *Config) seenByQuery(r *query.Reader) awaitMark {
	readers := semaphore.NewWeighted(markReaders)
	ask := func(ctx context.Context, at time.Time, trace string) (uint64, error) {
		if err := readers.Acquire(ctx, 1); err != nil {
			return 0, err
		}
		defer readers.Release(1)
		page, err := r.Query(ctx, query.Request{Topic: c.topicName(0), From: at, To: at.Add(1), Where: "trace_id = '" + trace + "'"})
		if err != nil {
			return 0, err
		}
		return uint64(len(page.Events)), nil
	}
	return func(ctx context.Context, at time.Time, trace string) error {
		for {
			n, err := ask(ctx, at, trace)
			if err != nil || n > 0 {
				return errors.Join(err, doubled(n))
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(queryPause):
			}
		}
	}
}

// askBySQL counts the events of each trace in one statement.
func (c *Config) askBySQL(ctx context.Context, waiting map[string]time.Time) (map[string]uint64, error) {
	var times, traces []string
	for trace, at := range waiting {
		times = append(times, fmt.Sprintf("fromUnixTimestamp64Nano(%d, 'UTC')", at.UnixNano()))
		traces = append(traces, "'"+trace+"'")
	}
	return numbers(ctx, c, fmt.Sprintf("SELECT trace_id, count() FROM %s WHERE ts IN (%s) AND trace_id IN (%s) GROUP BY trace_id",
		sql.QuotedTable(c.DB.Database, c.topicName(0)), strings.Join(times, ", "), strings.Join(traces, ", ")))
}

// mark publishes one event and waits until it is seen. One that is not accepted, or not
// seen, in time counts as markTimeout.
func mark(ctx context.Context, p *producer.Producer, i int, seen awaitMark) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	trace, at := fmt.Sprintf("mark%028d", i), time.Now()
	switch err := p.Publish(ctx, schemas.Event{Time: at, Type: "mark", TraceID: trace, UserID: fmt.Sprint("mark-", i)}); {
	case errors.Is(err, producer.ErrOutcomeUnknown) && errors.Is(err, context.DeadlineExceeded):
		return markTimeout, nil // the producer goes on; its Close says whether it is stored
	case err != nil:
		return 0, fmt.Errorf("publishing mark %d: %w", i, err)
	}
	accepted := time.Now()
	switch err := seen(ctx, at, trace); {
	case ctx.Err() != nil:
		return markTimeout, nil
	case err != nil:
		return 0, fmt.Errorf("mark %d: %w", i, err)
	}
	return time.Since(accepted), nil
}

// doubled is an error when an event is there more than once.
func doubled(n uint64) error {
	if n > 1 {
		return fmt.Errorf("it is there %d times", n)
	}
	return nil
}
