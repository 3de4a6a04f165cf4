package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// What the reads are measured over.
const (
	readShards = 200
	readRows   = 10_000_000
	// readNewest come behind them, as the clock says.
	readNewest = 20_000
)

// Users of whom a few shards have rows: BenchmarkErase takes one after the other.
// Each has 10 short times, far apart, and 100 events in each.
const (
	rareUsers = 5
	rareTimes = 10
	rareRows  = 100
	usualOnes = 5000 // of whom nearly every shard of their lane has a row or two
)

// fillShards sends 10 M events of this month, in the order of their times, to a
// topic whose shards are full at 50,000, and then the newest. Each of its four
// lanes has some fifty shards, one behind the other in time. It returns the month's
// first instant once all is stored and what is full is closed.
func fillShards(b *testing.B, cfg Config) time.Time {
	b.Helper()
	topic := schemas.NewTopic("app")
	topic.Rotate.Rows = readRows / readShards
	topic, err := topic.Declared()
	if err != nil {
		b.Fatal(err)
	}
	if _, _, err := cfg.Registry.Apply(b.Context(), topic, false); err != nil {
		b.Fatal(err)
	}
	parts, err := startParts(b.Context(), &cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(parts.stop)
	month := schemas.MonthOf(time.Now().UnixNano())
	if err := sendFilling(parts.ctx, cfg, month.Start()); err != nil {
		b.Fatal(parts.failed(err))
	}
	if err := waitClosed(parts.ctx, cfg, "app"); err != nil {
		b.Fatal(parts.failed(err))
	}
	if err := waitIdle(parts.ctx, &cfg); err != nil {
		b.Fatal(err)
	}
	return time.Unix(0, month.Start())
}

func sendFilling(ctx context.Context, cfg Config, start int64) error {
	p, err := producer.Connect(ctx, cfg.NATSURL, producer.Config{Topic: "app", Service: "api", Policy: producer.Block})
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same events each time
	messages := make([]string, pool)
	for i := range messages {
		messages[i] = fmt.Sprintf("GET /orders/%d took %d ms", random.IntN(100_000), random.IntN(900))
	}
	names := make([]string, usualOnes)
	for i := range names {
		names[i] = fmt.Sprint("u-", i)
	}
	levels := []string{"info", "warn", "error"}
	attrs := []producer.Attr{schemas.String("status", "200"), schemas.String("region", "eu")}
	step := (time.Now().Add(-time.Minute).UnixNano() - start) / readRows
	for i := range readRows + readNewest {
		e := producer.Event{Level: levels[i%3], Type: "request", UserID: names[random.IntN(usualOnes)], Message: messages[random.IntN(pool)],
			TraceID: fmt.Sprintf("%032x", random.Uint64()), Attrs: attrs}
		if i < readRows {
			e.Time = time.Unix(0, start+int64(i)*step)
			if at := i % (readRows / rareTimes); at < rareUsers*rareRows {
				e.UserID = fmt.Sprint("rare-", at%rareUsers)
			}
		}
		p.Log(e)
	}
	if err := p.Close(ctx); err != nil {
		return err
	}
	r, err := query.New(cfg.NATS, cfg.Registry, cfg.DB)
	if err != nil {
		return err
	}
	if pending, err := r.WaitStored(ctx, []string{"app"}, time.Minute, nil); err != nil || pending > 0 {
		return fmt.Errorf("%d events are not stored (%w)", pending, err)
	}
	return nil
}

// waitClosed waits until no shard is on its way between active and closed.
func waitClosed(ctx context.Context, cfg Config, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		shards, err := cfg.Registry.Shards(ctx, topic, 0)
		if err != nil {
			return err
		}
		open := 0
		for _, s := range shards {
			if s.Status != registry.Closed {
				open++
			}
		}
		if open <= schemas.DefaultLanes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d shards are not closed: %w", open, len(shards), ctx.Err())
		case <-tick.C:
		}
	}
}
