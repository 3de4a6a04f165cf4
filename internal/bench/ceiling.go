package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// ceiling inserts the very frames of the pipeline, read from SHARDS beforehand,
// straight into tables of their own, a shard into a shard, with nothing else running.
// Those of a generator would be others: in order, as they come from one producer only,
// and with fewer messages to compress.
func ceiling(ctx context.Context, cfg *Config, topics []schemas.Topic, res *Result) error {
	tops := make([]schemas.Topic, len(topics))
	shards := make([][]*ceilingShard, len(topics))
	rows := 0
	for i := range topics {
		tops[i] = topics[i]
		tops[i].Name = "ceiling_" + topics[i].Name
		if err := cfg.DB.Ensure(ctx, &tops[i]); err != nil {
			return err
		}
		n, err := storedRows(ctx, cfg, topics[i:i+1])
		if err != nil {
			return err
		}
		if shards[i], err = ceilingShards(ctx, cfg, topics[i].Name, n); err != nil {
			return err
		}
		rows += n
	}
	if err := waitIdle(ctx, cfg); err != nil {
		return err
	}
	watch, err := watchEngine(ctx, cfg)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := insertAll(ctx, cfg, tops, shards); err != nil {
		return err
	}
	res.CeilingSeconds = time.Since(began).Seconds()
	res.CeilingEventsPerSecond = float64(rows) / res.CeilingSeconds
	if res.CeilingEngine, err = watch.done(ctx, cfg); err != nil {
		return err
	}
	n, err := storedRows(ctx, cfg, tops)
	if err == nil && n != rows {
		return fmt.Errorf("%d rows are stored, %d were sent", n, rows)
	}
	return err
}

// insertAll makes the inserts: those of a shard in a row, cfg.Inserts at once.
func insertAll(ctx context.Context, cfg *Config, topics []schemas.Topic, shards [][]*ceilingShard) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cfg.Inserts)
	var done atomic.Int32
	inserts := 0
	for t := range topics {
		for _, s := range shards[t] {
			inserts += len(s.batches)
		}
	}
	for t := range topics {
		for _, s := range shards[t] {
			g.Go(func() error {
				head := uint64(0)
				for _, b := range s.batches {
					in := &tables.Insert{
						Topic: &topics[t], Schema: 1, Month: s.month, Shard: s.shard,
						Head: head, Frames: b.frames,
					}
					if err := cfg.DB.Insert(ctx, in); err != nil {
						return err
					}
					head = in.Last()
					cfg.Progress("ceiling", int(done.Add(1)), inserts)
				}
				return nil
			})
		}
	}
	return g.Wait()
}

// idleFor bounds the wait for merges: those of five million rows take seconds.
const idleFor = 30 * time.Second

// waitIdle waits until ClickHouse merges nothing, so that what was stored before
// does not slow what is timed next.
func waitIdle(ctx context.Context, cfg *Config) error {
	ctx, cancel := context.WithTimeout(ctx, idleFor)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for idle := 0; idle < 3; {
		var n uint64
		if err := cfg.DB.Conn().QueryRow(ctx, "SELECT count() FROM system.merges").Scan(&n); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("bench: running merges: %w", err)
		}
		if idle++; n > 0 {
			idle = 0
		}
		select {
		case <-ctx.Done():
			return nil // merges that take longer are part of the machine
		case <-tick.C:
		}
	}
	return nil
}

// ceilingShard is a shard's frames, as so many inserts.
type ceilingShard struct {
	month   schemas.Month
	shard   schemas.Shard
	batches []*ceilingBatch
	frames  uint64 // in them
}

// ceilingBatch is what one insert takes.
type ceilingBatch struct {
	frames                []tables.Frame
	rows, bytes, rawBytes int
}

// full is when a sink's batch is.
func (b *ceilingBatch) full() bool {
	return len(b.frames) >= tables.MaxFrames || b.rows >= tables.BatchRows || b.bytes >= tables.BatchBytes || b.rawBytes >= tables.MaxRawBytes
}

// add puts a frame behind those the shard has.
func (s *ceilingShard) add(payload []byte, f schemas.Frame) {
	if n := len(s.batches); n == 0 || s.batches[n-1].full() {
		s.batches = append(s.batches, &ceilingBatch{})
	}
	b := s.batches[len(s.batches)-1]
	s.frames++
	b.frames = append(b.frames, tables.Frame{Pos: s.frames, Rows: f.Rows, Payload: payload})
	b.rows, b.bytes, b.rawBytes = b.rows+f.Rows, b.bytes+len(payload), b.rawBytes+f.RawBytes
}

// ceilingShards reads the topic's frames, of so many rows, into memory: a megabyte for
// some 20,000 events of 200 bytes.
func ceilingShards(ctx context.Context, cfg *Config, topic string, rows int) ([]*ceilingShard, error) {
	var out []*ceilingShard
	shards := map[string]*ceilingShard{}
	err := eachFrame(ctx, cfg, topic, rows, func(m jetstream.Msg, p schemas.Placed) error {
		s := shards[m.Subject()]
		if s == nil {
			ref, err := schemas.ParseShardSubject(m.Subject())
			if err != nil {
				return err
			}
			s = &ceilingShard{month: ref.Month, shard: ref.ID}
			shards[m.Subject()] = s
			out = append(out, s)
		}
		s.add(m.Data(), p.Frame)
		return nil
	})
	return out, err
}
