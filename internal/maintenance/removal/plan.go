package removal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Left is what there is of a topic.
type Left struct {
	// Messages by stream: EVENTS, SHARDS, DOCS, TIMERS.
	Messages map[string]uint64 `json:"messages"`
	// Tables of ClickHouse, views included, and the rows in them.
	Tables []string `json:"tables"`
	Rows   uint64   `json:"rows"`
	// Entries of the registry and of its copies, but the descriptor.
	Entries uint64 `json:"entries"`
}

// Nothing reports whether there is nothing.
func (l *Left) Nothing() bool { return len(l.Messages) == 0 && len(l.Tables) == 0 && l.Entries == 0 }

// String says what there is, in a line.
func (l *Left) String() string {
	text := ""
	for _, stream := range slices.Sorted(maps.Keys(l.Messages)) {
		text += fmt.Sprintf("%d messages of %s, ", l.Messages[stream], stream)
	}
	return text + fmt.Sprintf("%d tables and views with %d rows, %d entries of the registry", len(l.Tables), l.Rows, l.Entries)
}

// place is a stream with the subjects that a topic has there, in the order in which they go.
type place struct {
	stream  string
	filters []string
}

// places are all streams that may hold something of a topic, whatever kind it was, and of those of its name before it.
func places(topic string, firsts []int) []place {
	var docs, timers []string
	for _, first := range firsts {
		token := schemas.FrontTopic(topic, first)
		docs, timers = append(docs, schemas.DocsFilters(token)...), append(timers, schemas.TimerTopicFilter(token))
	}
	return []place{
		{schemas.StreamEvents, []string{schemas.TopicFilter(topic)}},
		{schemas.StreamDocs, docs},
		{schemas.StreamTimers, timers},
		{schemas.StreamShards, []string{schemas.ShardsFilter(topic), schemas.GivenFilter(topic), schemas.DeadSubject(topic), schemas.RoutedFilter(topic)}},
	}
}

// firstsOf are the topics that a name has had, each by its First.
func firstsOf(ctx context.Context, reg *registry.Registry, topic string) ([]int, error) {
	firsts := []int{0}
	d, err := reg.Removal(ctx, topic)
	if err == nil {
		firsts = append(firsts, d.Firsts()...)
	} else if !errors.Is(err, registry.ErrNotFound) {
		return nil, err
	}
	t, err := reg.AskedTopic(ctx, topic)
	if err == nil {
		firsts = append(firsts, t.First)
	} else if !errors.Is(err, schemas.ErrUnknownTopic) {
		return nil, err
	}
	slices.Sort(firsts)
	return slices.Compact(firsts), nil
}

// Look counts what there is of a topic.
func Look(ctx context.Context, cfg Config, topic string) (*Left, error) {
	left := &Left{Messages: map[string]uint64{}}
	firsts, err := firstsOf(ctx, cfg.Registry, topic)
	if err != nil {
		return nil, err
	}
	for _, p := range places(topic, firsts) {
		for _, filter := range p.filters {
			subjects, err := streams.Subjects(ctx, cfg.Registry.JetStream(), p.stream, filter)
			if err != nil {
				return nil, fmt.Errorf("removal: %w", err)
			}
			for _, n := range subjects {
				left.Messages[p.stream] += n
			}
		}
	}
	if left.Tables, err = cfg.DB.OfTopic(ctx, topic); err != nil {
		return nil, fmt.Errorf("removal: %w", err)
	}
	if left.Rows, err = cfg.DB.RowsOf(ctx, left.Tables); err != nil {
		return nil, fmt.Errorf("removal: %w", err)
	}
	left.Entries, err = cfg.Registry.KeysLeft(ctx, topic)
	return left, err
}

// Plan is what a removal would take, and who would notice.
type Plan struct {
	Topic string `json:"topic"`
	Kind  string `json:"kind"`
	// Began is when a removal that is under way was entered; zero: none is.
	Began time.Time `json:"began,omitzero"`
	Left
	// Erasures whose certificates go, and seals.
	Erasures int    `json:"erasures"`
	Seals    uint64 `json:"seals"`
	// Producers that sent what EVENTS still has, some ten minutes: they are to be stopped first. At most registry.MaxLateProducers are named.
	Producers []string `json:"producers"`
}

// Propose says what a removal would take. It changes nothing.
func Propose(ctx context.Context, cfg Config, topic string) (*Plan, error) {
	t, began, err := named(ctx, cfg.Registry, topic)
	if err != nil {
		return nil, err
	}
	p := &Plan{Topic: topic, Kind: string(t.Kind), Began: began, Producers: []string{}}
	left, err := Look(ctx, cfg, topic)
	if err != nil {
		return nil, err
	}
	p.Left = *left
	erasures, err := cfg.Registry.Ledger(ctx, topic)
	if err != nil {
		return nil, err
	}
	p.Erasures = len(erasures)
	if p.Seals, err = cfg.Registry.LastSeal(ctx, topic); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	_, err = streams.Headers(ctx, cfg.Registry.JetStream(), schemas.StreamEvents, schemas.TopicFilter(topic), 1, func(m *streams.Message) error {
		if name := m.Header.Get(schemas.HeaderProducer); name != "" && len(seen) < registry.MaxLateProducers {
			seen[name] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("removal: %w", err)
	}
	p.Producers = append(p.Producers, slices.Sorted(maps.Keys(seen))...)
	return p, nil
}

// named is the topic of a name: declared, or being removed, or removed and there again.
func named(ctx context.Context, reg *registry.Registry, topic string) (t schemas.Topic, began time.Time, err error) {
	d, err := reg.Removal(ctx, topic)
	if err == nil && d.Ended == nil {
		return d.Topic, d.Began, nil
	}
	known := err == nil
	if t, err = reg.AskedTopic(ctx, topic); err != nil && known {
		return d.Topic, time.Time{}, nil
	}
	return t, time.Time{}, err
}
