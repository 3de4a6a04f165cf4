package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// replayBar is enough by itself; where reading the raw frames is slower, replay
// must come to replayShare of that.
const (
	replayBar   = 1_000_000
	replayShare = 0.8
)

// replay times `almanac replay`, a process that prints, against reading the
// same frames and doing nothing with them. The two take turns.
func replay(ctx context.Context, s *Suite) ([]Figure, error) {
	w, err := s.work(ctx, Config{Events: s.size(3_000_000)})
	if err != nil {
		return nil, err
	}
	defer w.end()
	if _, err := w.loaded(); err != nil {
		return nil, err
	}
	w.stop() // no other work may run
	cfg, topic := &w.cfg, w.topics[0].Name
	if err := waitIdle(ctx, cfg); err != nil {
		return nil, err
	}
	var printed, raw []float64
	rounds := s.rounds(3)
	for i := range rounds {
		s.Progress("", "replay", i, rounds)
		took, err := s.replayOnce(ctx, w.environment, topic, cfg.Events)
		if err != nil {
			return nil, err
		}
		printed = append(printed, float64(cfg.Events)/took.Seconds())
		if took, err = readFrames(ctx, cfg, topic); err != nil {
			return nil, err
		}
		raw = append(raw, float64(cfg.Events)/took.Seconds())
	}
	p, r := median(printed), median(raw)
	f := atLeast("replay", "almanac replay to stdout at full speed", p, unitRate, min(replayBar, replayShare*r),
		"%d runs of %s events as NDJSON, the process's start included, in turn with reading the raw frames (%s events/s); the bar is 1 M or 0.8 of that, the lower",
		rounds, count(cfg.Events), count(int(r)))
	return []Figure{f.raw("frames_events_per_second", r, "of_frames", p/r)}, nil
}

// replayOnce is how long the process takes until its last line.
func (s *Suite) replayOnce(ctx context.Context, h *Environment, topic string, events int) (time.Duration, error) {
	var lines lineCounter
	began := time.Now()
	p, err := s.startProcessInto(ctx, &lines, map[string]string{"ALMANAC_NATS": h.NATSURL, "ALMANAC_CLICKHOUSE": h.ClickHouse},
		"replay", topic, "--into", "-", "-o", "ndjson", "--quiet")
	if err != nil {
		return 0, err
	}
	defer p.stop()
	if err := p.wait(ctx); err != nil {
		return 0, err
	}
	if n := int(lines.n.Load()); n != events {
		return 0, fmt.Errorf("replay printed %d events of %d: %s", n, events, p.said.tail())
	}
	return time.Since(began), nil
}

// lineCounter counts lines and keeps none.
type lineCounter struct{ n atomic.Int64 }

var _ io.Writer = (*lineCounter)(nil)

// Write implements io.Writer.
func (c *lineCounter) Write(b []byte) (int, error) {
	c.n.Add(int64(bytes.Count(b, []byte{'\n'})))
	return len(b), nil
}

// readFrames is how long it takes to receive every frame of the topic.
func readFrames(ctx context.Context, cfg *Config, topic string) (time.Duration, error) {
	began := time.Now()
	err := eachFrame(ctx, cfg, topic, cfg.Events, func(jetstream.Msg, schemas.Placed) error { return nil })
	return time.Since(began), err
}
