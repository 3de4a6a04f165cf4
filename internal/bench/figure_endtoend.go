package bench

import (
	"context"
	"fmt"
)

// The whole way against the ceiling, at the sizes users have. The halves take
// turns, each round on servers of its own.

func endToEnd(ctx context.Context, s *Suite) ([]Figure, error) {
	return s.endToEnd(ctx, "end_to_end", 0.6, 3, Config{Events: 5_000_000, EventBytes: 200})
}

func endToEnd1000(ctx context.Context, s *Suite) ([]Figure, error) {
	return s.endToEnd(ctx, "end_to_end_1000", 0.5, 2, Config{Events: 1_500_000, EventBytes: 1000})
}

func endToEnd5000(ctx context.Context, s *Suite) ([]Figure, error) {
	return s.endToEnd(ctx, "end_to_end_5000", 0.5, 2, Config{Events: 400_000, EventBytes: 5000})
}

func endToEndTopics(ctx context.Context, s *Suite) ([]Figure, error) {
	return s.endToEnd(ctx, "end_to_end_topics", 0.5, 2, Config{Events: 3_000_000, EventBytes: 200, Topics: 10})
}

func (s *Suite) endToEnd(ctx context.Context, name string, bar float64, rounds int, cfg Config) ([]Figure, error) {
	cfg.Events, rounds = s.size(cfg.Events), s.rounds(rounds)
	var pipe, ceil, ratios []float64
	for range rounds {
		res, err := s.runOnce(ctx, cfg)
		if err != nil {
			return nil, err
		}
		cfg = Config{Events: res.Events, EventBytes: res.EventBytes, Topics: res.Topics, Producers: res.Producers, Lanes: res.Lanes}
		pipe, ceil, ratios = append(pipe, res.EventsPerSecond), append(ceil, res.CeilingEventsPerSecond), append(ratios, res.Ratio)
	}
	what := fmt.Sprintf("Log until the last row, against the ceiling: %d bytes, %d topics", cfg.EventBytes, cfg.Topics)
	f := atLeast(name, what, median(ratios), unitRatio, bar,
		"%d × (%s events from %d producers, fsync on; then the same as frames straight into ClickHouse): medians %s and %s events/s",
		rounds, count(cfg.Events), cfg.Producers, count(int(median(pipe))), count(int(median(ceil))))
	return []Figure{f.raw("events_per_second", median(pipe), "ceiling_events_per_second", median(ceil))}, nil
}

// runOnce is Run in a cluster of its own.
func (s *Suite) runOnce(ctx context.Context, cfg Config) (*Result, error) {
	h, err := s.Environment(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return Run(ctx, s.config(h, cfg))
}

// count is n for people: 450 k, 1.50 M.
func count(n int) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.2f M", float64(n)/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%d k", n/1000)
	}
	return fmt.Sprint(n)
}
