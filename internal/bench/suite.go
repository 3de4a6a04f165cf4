package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// Suite is what figures are measured with.
type Suite struct {
	// Environment starts servers on a directory of their own.
	Environment func(context.Context) (*Environment, error)
	// Binary is the almanac program, for figures that need processes; Producer is a program that
	// calls ProduceMain when its first argument is ProduceCommand.
	Binary, Producer string
	// Size is how much is measured.
	Size Size
	// Progress hears what goes on; may be nil.
	Progress func(figure, phase string, done, of int)

	markCount int // of each phase of visible; 0: as many as Size says
}

// Measure is one file of this package: it returns a figure, or a few that come
// from one run.
type Measure struct {
	Name string
	Run  func(context.Context, *Suite) ([]Figure, error)
}

// Measures are all, in the order of the table.
func Measures() []Measure {
	return []Measure{
		{"end-to-end", endToEnd},
		{"end-to-end-1000", endToEnd1000},
		{"end-to-end-5000", endToEnd5000},
		{"end-to-end-topics", endToEndTopics},
		{"log", logCost},
		{"log-p99", logLatency},
		{"visible", visible},
		{"memory", memory},
		{"stored-rows", storedRate},
		{"shards", shardsRate},
		{"idle", idle},
		{"disk", disk},
		{"replay", replay},
		{"page", page},
		{"series", alignedSeries},
		{"inputs", inputs},
		{"documents", documentFigures},
	}
}

// ErrUnknownFigure is a name that no Measure has.
var ErrUnknownFigure = errors.New("no such figure")

// Selected are the measures of the given names, or all; in the table's order.
func Selected(names []string) ([]Measure, error) {
	return chosen(Measures(), func(m Measure) string { return m.Name }, names, ErrUnknownFigure)
}

// chosen are those of some names, or all where none is given; in their own order. A name that
// there is not is unknown.
func chosen[T any](all []T, name func(T) string, names []string, unknown error) ([]T, error) {
	there := namesOf(all, name)
	for _, n := range names {
		if !slices.Contains(there, n) {
			return nil, fmt.Errorf("%w: %q; there are %s", unknown, n, strings.Join(there, ", "))
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(one T) bool { return !slices.Contains(names, name(one)) }), nil
}

func namesOf[T any](all []T, name func(T) string) []string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = name(one)
	}
	return names
}

// Names are those of all measures.
func Names() []string {
	return namesOf(Measures(), func(m Measure) string { return m.Name })
}

// Measure runs one and reports its progress under its name.
func (s *Suite) Measure(ctx context.Context, m Measure) ([]Figure, error) {
	figures, err := m.Run(ctx, s.named(m.Name))
	if err != nil {
		return nil, fmt.Errorf("figure %s: %w", m.Name, err)
	}
	return figures, nil
}

// config is cfg on a cluster.
func (s *Suite) config(h *Environment, cfg Config) Config {
	cfg.NATS, cfg.NATSURL, cfg.Connect, cfg.Registry, cfg.DB, cfg.EnginePID = h.NATS, h.NATSURL, h.Connect, h.Registry, h.DB, h.EnginePID
	cfg.Progress = func(phase string, done, of int) { s.Progress("", phase, done, of) }
	return cfg.withDefaults()
}

// declared starts a cluster and declares the topics of a configuration there. The caller closes
// the cluster.
func (s *Suite) declared(ctx context.Context, of Config) (h *Environment, cfg Config, topics []schemas.Topic, err error) {
	if h, err = s.Environment(ctx); err != nil {
		return nil, cfg, nil, err
	}
	cfg = s.config(h, of)
	if topics, err = declare(ctx, &cfg); err != nil {
		h.Close()
	}
	return h, cfg, topics, err
}
