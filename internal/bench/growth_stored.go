package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// growRows fills one table more and more, and measures after each step: the rate,
// the head of a shard, a page.
func growRows(ctx context.Context, s *Suite) ([]Curve, error) {
	w, err := s.work(ctx, Config{Events: s.size(growthEvents)})
	if err != nil {
		return nil, err
	}
	defer w.end()
	ctx = w.ctx
	if err := warm(ctx, &w.cfg, w.topics); err != nil {
		return nil, w.failed(err)
	}
	over := "rows in the table"
	rate := Curve{Name: "rows", What: "Log until the last row", Over: over, Unit: unitMicros + " an event"}
	page := Curve{Name: "rows-page", What: "the newest page of 500", Over: over, Unit: unitMillis}
	head := Curve{Name: "rows-head", What: "the head of a shard", Over: over, Unit: unitMillis}
	for _, n := range []int{1_000_000, 4_000_000, 16_000_000, 64_000_000} {
		have, err := storedRows(ctx, &w.cfg, w.topics)
		if err != nil {
			return nil, w.failed(err)
		}
		if more := s.size(n) - have; more > 0 {
			if err := fillFrom(ctx, &w.cfg, &w.topics[0], have, more); err != nil {
				return nil, w.failed(err)
			}
		}
		r, err := s.rate(ctx, &w.cfg, w.topics)
		if err != nil {
			return nil, w.failed(err)
		}
		p, hd, err := s.reads(ctx, &w.cfg, w.topics[0].Name)
		if err != nil {
			return nil, w.failed(err)
		}
		x := float64(s.size(n))
		rate.Points = append(rate.Points, Point{x, 1e6 / r})
		page.Points = append(page.Points, Point{x, p})
		head.Points = append(head.Points, Point{x, hd})
	}
	return []Curve{rate, page, head}, nil
}

// growShards gives one topic more and more shards, and measures after each step:
// the rate, a page, and how long router and sinks take from their start to the
// first row.
func growShards(ctx context.Context, s *Suite) ([]Curve, error) {
	over := "shards in the registry"
	rate := Curve{Name: "shards", What: "Log until the last row", Over: over, Unit: unitMicros + " an event"}
	page := Curve{Name: "shards-page", What: "the newest page of 500", Over: over, Unit: unitMillis}
	start := Curve{Name: "shards-start", What: "from the start of router and sinks to the first row", Over: over, Unit: unitMillis}
	h, err := s.Environment(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	cfg := s.config(h, Config{Events: s.size(growthEvents)})
	topics, err := declare(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	if _, err := s.shardsAt(ctx, &cfg, topics); err != nil { // makes the present month's shards
		return nil, err
	}
	have := 0
	for _, n := range []int{10, 100, 500, 2000} {
		if s.Size == Quick {
			n = max(10, n/20)
		}
		if more := n - have; more > 0 {
			if err := makeShards(ctx, &cfg, topics[0], more, 10); err != nil {
				return nil, fmt.Errorf("%d shards: %w", n, err)
			}
			have = n
		}
		points, err := s.shardsAt(ctx, &cfg, topics)
		if err != nil {
			return nil, fmt.Errorf("%d shards: %w", n, err)
		}
		for i, c := range []*Curve{&rate, &page, &start} {
			c.Points = append(c.Points, Point{float64(n), points[i]})
		}
	}
	return []Curve{rate, page, start}, nil
}

func (s *Suite) shardsAt(ctx context.Context, cfg *Config, topics []schemas.Topic) (points [3]float64, err error) {
	began := time.Now()
	parts, err := startParts(ctx, cfg)
	if err != nil {
		return points, err
	}
	defer parts.stop()
	if err := warm(parts.ctx, cfg, topics); err != nil {
		return points, parts.failed(err)
	}
	points[2] = millis(time.Since(began))
	r, err := s.rate(parts.ctx, cfg, topics)
	if err != nil {
		return points, parts.failed(err)
	}
	points[0] = 1e6 / r
	points[1], _, err = s.reads(parts.ctx, cfg, topics[0].Name)
	return points, parts.failed(err)
}

// reads are the medians of a page of 500 and of looking up a head, in ms.
func (s *Suite) reads(ctx context.Context, cfg *Config, topic string) (page, head float64, err error) {
	if err := waitIdle(ctx, cfg); err != nil {
		return 0, 0, err
	}
	r, stop, err := following(cfg)
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	shards, err := cfg.Registry.Shards(ctx, topic, schemas.MonthOf(time.Now().UnixNano()))
	if err != nil {
		return 0, 0, err
	}
	var pages, heads samples
	for range 15 {
		began := time.Now()
		if _, err := r.Query(ctx, query.Request{Topic: topic, Limit: query.DefaultLimit}); err != nil {
			return 0, 0, err
		}
		pages, began = append(pages, time.Since(began)), time.Now()
		if _, err := cfg.DB.Head(ctx, schemas.ShardRef{Topic: topic, Month: shards[0].Month, ID: shards[0].ID}); err != nil {
			return 0, 0, err
		}
		heads = append(heads, time.Since(began))
	}
	return millis(pages.quantile(0.5)), millis(heads.quantile(0.5)), nil
}
