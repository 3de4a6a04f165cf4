package bench

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// Curve is one cost over one size that grows.
type Curve struct {
	Name   string  `json:"name"` // stable: the plot's file name
	What   string  `json:"what"` // of the cost
	Over   string  `json:"over"` // the size
	Unit   string  `json:"unit"`
	Points []Point `json:"points"`
	Slope  float64 `json:"slope"`
	Order  string  `json:"order"`
}

// fitted fills Slope and Order.
func (c Curve) fitted() Curve {
	c.Slope = Slope(c.Points)
	c.Order = Order(c.Slope)
	if math.IsNaN(c.Slope) {
		c.Slope = 0 // JSON has no NaN; Order says it
	}
	return c
}

// GrowthReport is what growth.json holds.
type GrowthReport struct {
	Machine Machine `json:"machine"`
	Seconds float64 `json:"seconds"`
	// OtherCores and Size are as Report's.
	OtherCores float64 `json:"other_cores"`
	Size       Size    `json:"size"`
	Curves     []Curve `json:"curves"`
}

// Growths measures everything that grows, one size after the other.
func (s *Suite) Growths(ctx context.Context) ([]Curve, error) {
	var all []Curve
	for _, g := range []struct {
		name string
		run  func(context.Context, *Suite) ([]Curve, error)
	}{
		{"rows", growRows}, {"shards", growShards}, {"months", growMonths},
		{"topics", growTopics}, {"lanes", growLanes}, {"producers", growProducers},
	} {
		named := *s
		named.Progress = func(_, phase string, done, of int) {
			if s.Progress != nil {
				s.Progress(g.name, phase, done, of)
			}
		}
		curves, err := g.run(ctx, &named)
		if err != nil {
			return all, fmt.Errorf("growth with %s: %w", g.name, err)
		}
		for _, c := range curves {
			all = append(all, c.fitted())
		}
	}
	return all, nil
}

// growthEvents is a run of a second or two.
const growthEvents = 500_000

func growMonths(ctx context.Context, s *Suite) ([]Curve, error) {
	return s.growLoad(ctx, "months", "months of one topic that events go to", []int{1, 3, 12, 24}, func(c *Config, n int) { c.months = n })
}

func growTopics(ctx context.Context, s *Suite) ([]Curve, error) {
	return s.growLoad(ctx, "topics", "topics that events go to", []int{1, 4, 16, 64}, func(c *Config, n int) { c.Topics = n })
}

func growLanes(ctx context.Context, s *Suite) ([]Curve, error) {
	return s.growLoad(ctx, "lanes", "lanes of the topic", []int{1, 2, 4, 8, 16, 64}, func(c *Config, n int) { c.Lanes = n })
}

func growProducers(ctx context.Context, s *Suite) ([]Curve, error) {
	return s.growLoad(ctx, "producers", "producers at once", []int{1, 4, 16, 64}, func(c *Config, n int) { c.Producers = n })
}

// growLoad measures a run at each size, each on a house of its own. A first run,
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
	h, err := s.House(ctx)
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

// Markdown is the report as a section of a README; the plots lie beside it.
func (r GrowthReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Size %s; the run took %.0f s%s.\n\n", r.Machine, r.Size, r.Seconds, beside(r.OtherCores))
	b.WriteString("| cost | over | measured | order of growth |\n|---|---|---|---|\n")
	for _, c := range r.Curves {
		points := make([]string, len(c.Points))
		for i, p := range c.Points {
			points[i] = fmt.Sprintf("%s: %s", short(p.Size), short(p.Cost))
		}
		fmt.Fprintf(&b, "| %s, %s | %s | %s | %s |\n", c.What, c.Unit, c.Over, strings.Join(points, " · "), c.Order)
	}
	for _, c := range r.Curves {
		fmt.Fprintf(&b, "\n![%s, over %s](growth-%s.svg)", c.What, c.Over, c.Name)
	}
	return b.String() + "\n"
}

// short is a number with three digits.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3g M", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.3g k", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}
