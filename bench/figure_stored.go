package bench

import (
	"context"

	"github.com/almanac-events/almanac/schemas"
)

// storedRate compares the rate into a table that holds 100 million rows with that
// into an empty one. Both tables are in one ClickHouse, and the runs take turns.
func storedRate(ctx context.Context, s *Suite) ([]Figure, error) {
	h, err := s.House(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	rows := s.size(100_000_000)
	empty := s.config(h, Config{Events: s.size(2_000_000), prefix: "empty_"})
	full := empty
	full.prefix = "full_"
	rates, err := s.alternate(ctx, []*Config{&empty, &full}, 3, func(ctx context.Context, topics [][]schemas.Topic) error {
		return fill(ctx, &full, &topics[1][0], rows)
	})
	if err != nil {
		return nil, err
	}
	e, f := median(rates[0]), median(rates[1])
	return []Figure{atLeast("stored_rows", "the rate with 100 M rows stored, against an empty table", f/e, unitRatio, 0.9,
		"%s rows put into other shards of the table by INSERT … SELECT; %d runs of %s events each, in turn: %s against %s events/s",
		count(rows), len(rates[0]), count(empty.Events), count(int(f)), count(int(e))).
		raw("events_per_second", f, "empty_events_per_second", e)}, nil
}

// alternate declares each config's topics on one house, calls prepare, and then
// runs the configs in turn, so many rounds; it returns the rates of each.
func (s *Suite) alternate(ctx context.Context, cfgs []*Config, rounds int, prepare func(context.Context, [][]schemas.Topic) error) ([][]float64, error) {
	topics := make([][]schemas.Topic, len(cfgs))
	for i, c := range cfgs {
		var err error
		if topics[i], err = declare(ctx, c); err != nil {
			return nil, err
		}
	}
	if prepare != nil {
		if err := prepare(ctx, topics); err != nil {
			return nil, err
		}
	}
	parts, err := startParts(ctx, cfgs[0])
	if err != nil {
		return nil, err
	}
	defer parts.stop()
	for i, c := range cfgs {
		if err := warm(parts.ctx, c, topics[i]); err != nil {
			return nil, parts.failed(err)
		}
	}
	rates := make([][]float64, len(cfgs))
	for range s.rounds(rounds) {
		for i, c := range cfgs {
			rate, err := s.rate(parts.ctx, c, topics[i])
			if err != nil {
				return nil, parts.failed(err)
			}
			rates[i] = append(rates[i], rate)
		}
	}
	return rates, nil
}

// rate lets merges end, then runs the config's events once.
func (s *Suite) rate(ctx context.Context, c *Config, topics []schemas.Topic) (float64, error) {
	if err := settle(ctx, c); err != nil {
		return 0, err
	}
	_, stored, err := load(ctx, c, topics)
	return float64(c.Events) / stored, err
}
