package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// shardsRate compares the rate with 2,000 shards in the registry with that with
// 10, on two houses whose runs take turns; and it times how long an `up` takes to
// start on the cluster with the many.
func shardsRate(ctx context.Context, s *Suite) ([]Figure, error) {
	many := s.size(2000)
	var cfgs []*Config
	var topics [][]schemas.Topic
	var ps []*parts
	var houses []*Environment
	for _, shards := range []int{10, many} {
		h, cfg, t, err := s.declared(ctx, Config{Events: s.size(2_000_000)})
		if err != nil {
			return nil, err
		}
		defer h.Close()
		if err := makeShards(ctx, &cfg, t[0], shards, 10); err != nil {
			return nil, err
		}
		p, err := startParts(ctx, &cfg)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		if err := warm(p.ctx, &cfg, t); err != nil {
			return nil, p.failed(err)
		}
		cfgs, topics, ps, houses = append(cfgs, &cfg), append(topics, t), append(ps, p), append(houses, h)
	}
	all := make([]runs, 2)
	for range s.rounds(3) {
		for i := range all {
			if err := all[i].add(ps[i].ctx, s, cfgs[i], topics[i]); err != nil {
				return nil, ps[i].failed(err)
			}
		}
	}
	for i := range ps {
		ps[i].stop()
		houses[i].Stop()
	}
	ready, stored, err := s.startUp(ctx, houses[1].Dir, topics[1][0].Name)
	if err != nil {
		return nil, err
	}
	f, l := median(all[0].rates), median(all[1].rates)
	rate := atLeast("shards_rate", "the rate with 2,000 shards in the registry, against 10", l/f, unitRatio, 0.9,
		"%d shards of one frame each, over 10 months, of the topic that is measured, closed before; %d runs of %s events each, in turn: %s against %s events/s; ClickHouse took %.2f against %.2f µs of CPU an event",
		many, len(all[0].rates), count(cfgs[0].Events), count(int(l)), count(int(f)), all[1].engineCPU(), all[0].engineCPU()).
		raw("events_per_second", l, "few_events_per_second", f)
	all[1].parts("", rate.Raw)
	all[0].parts("few_", rate.Raw)
	return []Figure{
		rate,
		atMost("shards_start", "start of almanac up with 2,000 shards", ready.Seconds(), unitSecond, 3,
			"from exec to the line that says ready, ClickHouse's own start included; the first event was in ClickHouse after %.1f s", stored.Seconds()).
			raw("first_row_seconds", stored.Seconds()),
	}, nil
}

// startUp runs `almanac up` on a directory and returns when it was ready, and
// when the first event published then could be selected.
func (s *Suite) startUp(ctx context.Context, dir, topic string) (ready, stored time.Duration, err error) {
	began := time.Now()
	p, err := s.startProcess(ctx, nil, "up", "--data", dir, "--ports", "auto", "--http", "off")
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	if err := p.ready(ctx); err != nil {
		return 0, 0, err
	}
	ready = time.Since(began)
	a, err := embedded.ReadAddresses(dir)
	if err != nil {
		return 0, 0, err
	}
	db, err := openDB(a)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = db.Close() }()
	cfg := &Config{DB: db, Progress: func(string, int, int) {}}
	topics := []schemas.Topic{{Name: topic}}
	before, err := storedRows(ctx, cfg, topics)
	if err != nil {
		return 0, 0, err
	}
	out, err := producer.Connect(ctx, a.NATS, producer.Config{Topic: topic})
	if err != nil {
		return 0, 0, err
	}
	if err := out.Publish(ctx, schemas.Event{Message: "first", UserID: "first"}); err != nil {
		return 0, 0, fmt.Errorf("the first event after a start: %w", err)
	}
	if err := waitStored(ctx, cfg, topics, before+1); err != nil {
		return 0, 0, err
	}
	return ready, time.Since(began), out.Close(ctx)
}
