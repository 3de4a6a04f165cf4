package bench

import (
	"context"
	"errors"
	"syscall"

	"github.com/almanac-events/almanac/schemas"
)

// storedRate compares the rate into a table that holds 100 million rows with that
// into an empty one. Both tables are in one ClickHouse, and the runs take turns.
func storedRate(ctx context.Context, s *Suite) ([]Figure, error) {
	h, err := s.Environment(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	rows := s.size(100_000_000)
	empty := s.config(h, Config{Events: s.size(2_000_000), prefix: "empty_"})
	full := empty
	full.prefix = "full_"
	runs, err := s.alternate(ctx, []*Config{&empty, &full}, 4, func(ctx context.Context, topics [][]schemas.Topic) error {
		if err := fill(ctx, &full, &topics[1][0], rows); err != nil {
			return err
		}
		// The gigabytes just written would go to the disk during the runs, between
		// their fsyncs: rows that are stored for long do not.
		syscall.Sync()
		return nil
	})
	if err != nil {
		return nil, err
	}
	e, f := median(runs[0].rates), median(runs[1].rates)
	figure := atLeast("stored_rows", "the rate with 100 M rows stored, against an empty table", f/e, unitRatio, 0.9,
		"%s rows put into other shards of the table by INSERT … SELECT and synced; %d runs of %s events each, in turn: %s against %s events/s; ClickHouse took %.2f against %.2f µs of CPU an event",
		count(rows), len(runs[0].rates), count(empty.Events), count(int(f)), count(int(e)), runs[1].engineCPU(), runs[0].engineCPU()).
		raw("events_per_second", f, "empty_events_per_second", e)
	runs[1].parts("", figure.Raw)
	runs[0].parts("empty_", figure.Raw)
	return []Figure{figure}, nil
}

// runs are those of one config: events a second, and CPU an event by part.
type runs struct {
	rates []float64
	cpu   map[string][]float64
}

// engineCPU is ClickHouse's, an event.
func (r *runs) engineCPU() float64 { return median(r.cpu[partEngine]) }

// parts are the medians of all parts, named for Figure.Raw.
func (r *runs) parts(prefix string, raw map[string]float64) {
	for part, v := range r.cpu {
		raw[prefix+part+"_us_per_event"] = median(v)
	}
}

// add makes one run more.
func (r *runs) add(ctx context.Context, s *Suite, cfg *Config, topics []schemas.Topic) error {
	if err := waitIdle(ctx, cfg); err != nil {
		return err
	}
	meter, err := startCPU(cfg.EnginePID)
	if err != nil {
		return err
	}
	rate, err := s.rate(ctx, cfg, topics)
	r.rates = append(r.rates, rate)
	cpu, _, failed := meter.stop(cfg.Events, "")
	if r.cpu == nil {
		r.cpu = map[string][]float64{}
	}
	for part, v := range cpu {
		r.cpu[part] = append(r.cpu[part], v)
	}
	return errors.Join(err, failed)
}

// alternate declares each config's topics on one cluster, calls prepare, and then
// runs the configs in turn, so many rounds, every other one backwards: what a run
// leaves to merge and to write meets all of them.
func (s *Suite) alternate(ctx context.Context, cfgs []*Config, rounds int, prepare func(context.Context, [][]schemas.Topic) error) ([]runs, error) {
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
	all := make([]runs, len(cfgs))
	for round := range s.rounds(rounds) {
		for n := range cfgs {
			i := n
			if round%2 == 1 {
				i = len(cfgs) - 1 - n
			}
			if err := all[i].add(parts.ctx, s, cfgs[i], topics[i]); err != nil {
				return nil, parts.failed(err)
			}
		}
	}
	return all, nil
}

// rate lets merges end, then runs the config's events once.
func (s *Suite) rate(ctx context.Context, c *Config, topics []schemas.Topic) (float64, error) {
	if err := waitIdle(ctx, c); err != nil {
		return 0, err
	}
	_, stored, err := load(ctx, c, topics)
	return float64(c.Events) / stored, err
}
