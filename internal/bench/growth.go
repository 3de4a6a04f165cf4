package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Growth is one size that grows, and how the costs over it are measured.
type Growth struct {
	Name string
	Run  func(context.Context, *Suite) ([]Curve, error)
}

// Growths are all, in the order of the table.
func Growths() []Growth {
	return []Growth{
		{"rows", growRows},
		{"shards", growShards},
		{"months", growMonths},
		{"topics", growTopics},
		{"lanes", growLanes},
		{"producers", growProducers},
		{"spaces", growSpaces},
	}
}

// ErrUnknownGrowth is a name that no Growth has.
var ErrUnknownGrowth = errors.New("no such growth")

// SelectedGrowths are those of the given names, or all; in the table's order.
func SelectedGrowths(names []string) ([]Growth, error) {
	return chosen(Growths(), func(g Growth) string { return g.Name }, names, ErrUnknownGrowth)
}

// GrowthNames are those of all.
func GrowthNames() []string {
	return namesOf(Growths(), func(g Growth) string { return g.Name })
}

// Grow measures one, which began is the run it belongs to, and reports its
// progress under its name.
func (s *Suite) Grow(ctx context.Context, g Growth, began time.Time) ([]Curve, error) {
	at, others := time.Now(), WatchOthers()
	curves, err := g.Run(ctx, s.named(g.Name))
	if err != nil {
		return nil, fmt.Errorf("growth with %s: %w", g.Name, err)
	}
	run := GrowthRun{Began: began.UTC().Truncate(time.Second), Size: s.Size, Seconds: time.Since(at).Seconds(), OtherCores: others.Cores()}
	for i := range curves {
		curves[i].Growth, curves[i].Run = g.Name, run
		curves[i] = curves[i].fitted()
	}
	return curves, nil
}

// growthEvents is a run of a second or two.
const growthEvents = 500_000

// growMonths goes as far as a lane keeps frames open: of more months in turn, each
// event closes a frame, which then has that one event.
func growMonths(ctx context.Context, s *Suite) ([]Curve, error) {
	return s.growLoad(ctx, "months", "months of one topic that events go to", []int{1, 3, 6, 12}, func(c *Config, n int) { c.months = n })
}

func growTopics(ctx context.Context, s *Suite) ([]Curve, error) {
	return s.growLoad(ctx, "topics", "topics that events go to", []int{1, 4, 16, 64}, func(c *Config, n int) { c.Topics = n })
}

func growLanes(ctx context.Context, s *Suite) ([]Curve, error) {
	return s.growLoad(ctx, "lanes", "lanes of the topic", []int{1, 4, 16, 64}, func(c *Config, n int) { c.Lanes = n })
}

func growProducers(ctx context.Context, s *Suite) ([]Curve, error) {
	return s.growLoad(ctx, "producers", "producers at once", []int{1, 4, 16, 64}, func(c *Config, n int) { c.Producers = n })
}

// growLoad measures a run at each size, each on a cluster of its own. A first run,
// which is not timed, makes what the first event of a shard has to make.
func (s *Suite) growLoad(ctx context.Context, name, over string, sizes []int, set func(*Config, int)) ([]Curve, error) {
	c := Curve{Name: name, What: "Log until the last row", Over: over, Unit: unitMicros + " an event"}
	for i, n := range sizes {
		s.Progress("", fmt.Sprint(n), i, len(sizes))
		cost, err := s.growOnce(ctx, func(c *Config) { set(c, n) })
		if err != nil {
			return nil, fmt.Errorf("%d: %w", n, err)
		}
		c.Points = append(c.Points, Point{float64(n), cost})
	}
	return []Curve{c}, nil
}

func (s *Suite) growOnce(ctx context.Context, set func(*Config)) (micros float64, err error) {
	h, err := s.Environment(ctx)
	if err != nil {
		return 0, err
	}
	defer h.Close()
	cfg := Config{Events: s.size(growthEvents)}
	set(&cfg)
	cfg = s.config(h, cfg)
	topics, err := declare(ctx, &cfg)
	if err != nil {
		return 0, err
	}
	parts, err := startParts(ctx, &cfg)
	if err != nil {
		return 0, err
	}
	defer parts.stop()
	if err := warm(parts.ctx, &cfg, topics); err != nil {
		return 0, parts.failed(err)
	}
	first := cfg
	first.Events /= 10
	if _, _, err := load(parts.ctx, &first, topics); err != nil {
		return 0, parts.failed(err)
	}
	rate, err := s.rate(parts.ctx, &cfg, topics)
	return 1e6 / rate, parts.failed(err)
}
