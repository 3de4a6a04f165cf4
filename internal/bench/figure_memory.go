package bench

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/almanac-events/almanac/schemas"
)

// memory is the most resident memory of each part at full load, every part a
// process of its own: four producers, a router, a sink.
func memory(ctx context.Context, s *Suite) ([]Figure, error) {
	h, cfg, topics, err := s.declared(ctx, Config{Events: s.size(4_000_000)})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	env := map[string]string{"ALMANAC_NATS": h.NATSURL, "ALMANAC_CLICKHOUSE": h.ClickHouse}
	var running []*process
	for _, part := range []string{"router", "sink"} {
		p, err := s.startProcess(ctx, env, part)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		if err := p.ready(ctx); err != nil {
			return nil, err
		}
		running = append(running, p)
	}
	if err := warm(ctx, &cfg, topics); err != nil {
		return nil, err
	}
	before, err := storedRows(ctx, &cfg, topics)
	if err != nil {
		return nil, err
	}
	each := cfg.Events / cfg.Producers
	var producers []*process
	for n := range cfg.Producers {
		p, err := s.startProducer(ctx, env, topics[0].Name,
			"--events", strconv.Itoa(each), "--event-bytes", strconv.Itoa(cfg.EventBytes), "--seed", strconv.Itoa(n+1))
		if err != nil {
			return nil, err
		}
		defer p.stop()
		producers = append(producers, p)
	}
	var most int64
	for _, p := range producers {
		if err := p.wait(ctx); err != nil {
			return nil, err
		}
		most = max(most, p.peakBytes())
	}
	if err := waitStored(ctx, &cfg, topics, before+each*cfg.Producers); err != nil {
		return nil, err
	}
	how := fmt.Sprintf("%s events from %d producer processes, one router and one sink process; the kernel's peak (VmHWM)", count(cfg.Events), cfg.Producers)
	figure := func(part string, bytes int64, bar float64) Figure {
		return atMost("memory_"+part, "resident memory of a "+part+" at full load", float64(bytes)/(1<<20), unitMiB, bar, "%s", how)
	}
	return []Figure{figure("producer", most, 64), figure("router", running[0].peakBytes(), 128), figure("sink", running[1].peakBytes(), 384)}, nil
}

// Produce logs generated events to a topic, waiting where the stream is full,
// until all are accepted: the producer process of the memory figures.
func Produce(ctx context.Context, natsURL, topic string, events, eventBytes int, seed uint64) error {
	return ProduceAll(ctx, natsURL, topic, Events(seed, events, eventBytes))
}

// ProduceAll logs events as they come, until all are accepted.
func ProduceAll(ctx context.Context, natsURL, topic string, events iter.Seq[schemas.Event]) error {
	return produceTo(ctx, natsURL, []string{topic}, events)
}
