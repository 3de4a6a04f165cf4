package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
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
			dropped += w.p.Stats().DroppedTotal()
		}
		return errors.Join(err, e)
	})
	if err != nil {
		return nil, err
	}
	how := "half of the rate just measured (%s events/s); %d marked events, five a second on a schedule, each asked for again and again from its acknowledgement: p50 %.0f, most %.0f ms, %d not within %s; the load dropped %d events"
	figure := func(name, what string, v samples, bar float64) Figure {
		return atMost(name, what, millis(v.quantile(0.99)), unitMillis, bar, how, count(int(rate)), len(v), millis(v.quantile(0.5)), millis(v.quantile(1)), v.above(markTimeout), markTimeout, dropped).
			raw("p50_ms", millis(v.quantile(0.5)), "p99_ms", millis(v.quantile(0.99)), "max_ms", millis(v.quantile(1)))
	}
	return []Figure{
		figure("visible_query", "accepted until query shows it, 99th percentile at half load", byQuery, 100),
		figure("visible_sql", "accepted until plain SQL shows it, 99th percentile at half load", bySQL, 1500),
	}, nil
}

const (
	markEvery = 200 * time.Millisecond
	// markTimeout bounds the wait for one mark; ten times the slacker bar.
	markTimeout = 15 * time.Second
	// queryPause and sqlPause are between two questions: a twentieth of the bars, so
	// that asking is not the load. A question by SQL costs some 5 ms of CPU, and at the
	// bar four marks wait for one at a time.
	queryPause = 5 * time.Millisecond
	sqlPause   = 75 * time.Millisecond
	// markReaders ask at once, as so many people who look at a screen would: when
	// answers are late, marks that wait must not become a load that grows with the
	// delay. The wait for a turn counts as the mark's.
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
	r, err := query.New(nc, reg, cfg.DB)
	if err != nil {
		return nil, nil, err
	}
	p, err := producer.Connect(ctx, cfg.NATSURL, producer.Config{Topic: cfg.topicName(0), Policy: producer.Block, Linger: -1})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = p.Close(ctx) }()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	readers := semaphore.NewWeighted(markReaders)
	tick := time.NewTicker(markEvery)
	defer tick.Stop()
	n := s.size(150)
	for i := range n {
		s.Progress("", "visible", i, n)
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-tick.C:
		}
		wg.Go(func() {
			seen, err := s.mark(ctx, cfg, p, r, readers, i)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && first == nil:
				first = err
			case err == nil && i%2 == 0:
				byQuery = append(byQuery, seen)
			case err == nil:
				bySQL = append(bySQL, seen)
			}
		})
	}
	wg.Wait()
	return byQuery, bySQL, first
}

// mark publishes one event and waits until it is seen: the even ones by query,
// the odd ones by SQL. One that is not seen in time counts as markTimeout.
func (s *Suite) mark(ctx context.Context, cfg *Config, p *producer.Producer, r *query.Reader, readers *semaphore.Weighted, i int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	trace, at := fmt.Sprintf("mark%028d", i), time.Now()
	if err := p.Publish(ctx, schemas.Event{Time: at, Type: "mark", TraceID: trace, UserID: fmt.Sprint("mark-", i)}); err != nil {
		return 0, fmt.Errorf("publishing mark %d: %w", i, err)
	}
	accepted := time.Now()
	ask, pause := func() (int, error) {
		page, err := r.Query(ctx, query.Request{Topic: cfg.topicName(0), From: at, To: at, Where: "trace_id = '" + trace + "'"})
		if err != nil {
			return 0, fmt.Errorf("mark %d by query: %w", i, err)
		}
		return len(page.Events), nil
	}, queryPause
	if i%2 == 1 {
		ask, pause = func() (int, error) {
			var n uint64
			q := fmt.Sprintf("SELECT count() FROM %s WHERE ts = fromUnixTimestamp64Nano(%d, 'UTC') AND trace_id = '%s'",
				schemas.QuotedTable(cfg.DB.Database, cfg.topicName(0)), at.UnixNano(), trace)
			if err := cfg.DB.Conn().QueryRow(ctx, q).Scan(&n); err != nil {
				return 0, fmt.Errorf("mark %d by SQL: %w", i, err)
			}
			return int(n), nil
		}, sqlPause
	}
	for {
		if readers.Acquire(ctx, 1) != nil {
			return markTimeout, nil
		}
		n, err := ask()
		readers.Release(1)
		switch {
		case ctx.Err() != nil:
			return markTimeout, nil
		case err != nil:
			return 0, err
		case n == 1:
			return time.Since(accepted), nil
		case n > 1:
			return 0, fmt.Errorf("mark %d is there %d times", i, n)
		}
		select {
		case <-ctx.Done():
			return markTimeout, nil
		case <-time.After(pause):
		}
	}
}
