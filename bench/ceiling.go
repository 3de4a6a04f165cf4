package bench

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// ceilingBatchRows is what one insert takes: the sinks' default.
const ceilingBatchRows = 200_000

// ceiling inserts the same events, encoded beforehand, straight into tables of
// their own: as many as the pipeline has topics, each of as many shards as the
// topic has lanes, with nothing else running.
func ceiling(ctx context.Context, cfg *Config, topics []schemas.Topic, res *Result) error {
	tops := make([]schemas.Topic, len(topics))
	batches := make([][]ceilingBatch, len(topics))
	for i := range topics {
		tops[i] = topics[i]
		tops[i].Name = "ceiling_" + topics[i].Name
		if err := cfg.DB.Ensure(ctx, &tops[i]); err != nil {
			return err
		}
		batches[i] = encodeAll(&tops[i], cfg, i, res.LZ4Share)
	}
	if err := settle(ctx, cfg); err != nil {
		return err
	}
	watch, err := watchEngine(ctx, cfg)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := insertAll(ctx, cfg, tops, batches); err != nil {
		return err
	}
	res.CeilingSeconds = time.Since(began).Seconds()
	res.CeilingEventsPerSecond = float64(cfg.Events) / res.CeilingSeconds
	if res.CeilingEngine, err = watch.done(ctx, cfg); err != nil {
		return err
	}
	n, err := storedRows(ctx, cfg, tops)
	if err == nil && n != cfg.Events {
		return fmt.Errorf("%d rows are stored, %d were sent", n, cfg.Events)
	}
	return err
}

// insertAll makes the inserts: those of a shard in a row, cfg.Inserts at once.
func insertAll(ctx context.Context, cfg *Config, topics []schemas.Topic, batches [][]ceilingBatch) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cfg.Inserts)
	var done atomic.Int32
	for t := range topics {
		for lane := range cfg.Lanes {
			g.Go(func() error {
				head := uint64(0)
				for i := lane; i < len(batches[t]); i += cfg.Lanes {
					b := batches[t][i]
					in := &tables.Insert{
						Topic: &topics[t], Schema: 1, Month: b.month, Shard: schemas.Shard(lane + 1),
						Head: head, Last: head + uint64(len(b.frames)), Frames: b.frames,
					}
					if err := cfg.DB.Insert(ctx, in); err != nil {
						return err
					}
					head = in.Last
					cfg.Progress("ceiling", int(done.Add(1)), len(batches)*len(batches[t]))
				}
				return nil
			})
		}
	}
	return g.Wait()
}

// settleFor bounds the wait for merges: those of five million rows take seconds.
const settleFor = 30 * time.Second

// settle waits until ClickHouse merges nothing, so that what was stored before
// does not slow what is timed next.
func settle(ctx context.Context, cfg *Config) error {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
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

// ceilingBatch is what one insert of the ceiling takes.
type ceilingBatch struct {
	month  schemas.Month
	frames [][]byte
}

// encodeAll makes the frames of the nth topic's share of the events. As much of the
// inserts is in LZ4 as of the pipeline's frames, and each in one kind: ClickHouse
// takes no other.
func encodeAll(topic *schemas.Topic, cfg *Config, n int, lz4Share float64) []ceilingBatch {
	b := schemas.NewFrameBuilder(topic)
	var ids schemas.IDSource
	gen := newGenerator(uint64(n+1), cfg.EventBytes)
	share := cfg.Events / cfg.Topics
	if n < cfg.Events%cfg.Topics {
		share++
	}
	now := time.Now().UnixNano()
	month := schemas.MonthOf(now)
	if end := month.End() - int64(cfg.Events); now > end {
		now = end // all within one month
	}
	var out []ceilingBatch
	rows := 0
	var buf []byte
	cut := func() {
		if b.Rows() == 0 {
			return
		}
		if rows == 0 {
			out = append(out, ceilingBatch{month: month})
		}
		by := schemas.CompressionZSTD
		if k := float64(len(out)); int(k*lz4Share) > int((k-1)*lz4Share) {
			by = schemas.CompressionLZ4
		}
		_, payload := b.EncodeTo(buf[:0], by)
		buf = payload
		last := &out[len(out)-1]
		last.frames = append(last.frames, bytes.Clone(payload))
		if rows += b.Rows(); rows >= ceilingBatchRows {
			rows = 0
		}
		b.Reset()
	}
	for i := range share {
		e := gen.event()
		b.Append(&e, now+int64(i), ids.Next(now+int64(i)))
		if b.Full() {
			cut()
		}
	}
	cut()
	return out
}
