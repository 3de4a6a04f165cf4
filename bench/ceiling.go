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

// ceiling inserts the same events, encoded beforehand, straight into a table of
// their own.
func ceiling(ctx context.Context, cfg *Config, topics []schemas.Topic, res *Result) error {
	topic := topics[0]
	topic.Name = "ceiling"
	if err := cfg.DB.Ensure(ctx, &topic); err != nil {
		return err
	}
	batches, err := encodeAll(&topic, cfg)
	if err != nil {
		return err
	}
	watch, err := watchEngine(ctx, cfg)
	if err != nil {
		return err
	}
	began := time.Now()
	g, insertCtx := errgroup.WithContext(ctx)
	g.SetLimit(cfg.Inserts)
	var done atomic.Int32
	for lane := range cfg.Lanes {
		// As many shards as the pipeline has lanes, the inserts of each in a row.
		g.Go(func() error {
			head := uint64(0)
			for i := lane; i < len(batches); i += cfg.Lanes {
				b := batches[i]
				in := &tables.Insert{
					Topic: &topic, Schema: 1, Month: b.month, Shard: schemas.Shard(lane + 1),
					Head: head, Last: head + uint64(len(b.frames)), Frames: b.frames,
				}
				if err := cfg.DB.Insert(insertCtx, in); err != nil {
					return err
				}
				head = in.Last
				cfg.Progress("ceiling", int(done.Add(1)), len(batches))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	res.CeilingSeconds = time.Since(began).Seconds()
	res.CeilingEventsPerSecond = float64(cfg.Events) / res.CeilingSeconds
	if res.CeilingEngine, err = watch.done(ctx, cfg); err != nil {
		return err
	}
	var n uint64
	if err := cfg.DB.Conn().QueryRow(ctx, "SELECT count() FROM "+schemas.QuotedTable(cfg.DB.Database, topic.Name)).Scan(&n); err == nil && n != uint64(cfg.Events) {
		return fmt.Errorf("%d rows are stored, %d were sent", n, cfg.Events)
	}
	return nil
}

// ceilingBatch is what one insert of the ceiling takes.
type ceilingBatch struct {
	month  schemas.Month
	frames [][]byte
}

func encodeAll(topic *schemas.Topic, cfg *Config) ([]ceilingBatch, error) {
	b := schemas.NewFrameBuilder(topic)
	gen := newGenerator(1, cfg.EventBytes)
	var ids schemas.IDSource
	now := time.Now().UnixNano()
	month := schemas.MonthOf(now)
	if end := month.End() - int64(cfg.Events); now > end {
		now = end // all within one month
	}
	var out []ceilingBatch
	rows := 0
	cut := func() error {
		if b.Rows() == 0 {
			return nil
		}
		_, payload, err := b.Encode()
		if err != nil {
			return err
		}
		if rows == 0 {
			out = append(out, ceilingBatch{month: month})
		}
		last := &out[len(out)-1]
		last.frames = append(last.frames, bytes.Clone(payload))
		if rows += b.Rows(); rows >= ceilingBatchRows {
			rows = 0
		}
		b.Reset()
		return nil
	}
	for i := range cfg.Events {
		e := gen.event()
		b.Append(&e, now+int64(i), ids.Next(now+int64(i)))
		if b.Full() {
			if err := cut(); err != nil {
				return nil, err
			}
		}
	}
	return out, cut()
}
