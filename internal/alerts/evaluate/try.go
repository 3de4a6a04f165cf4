package evaluate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
)

// Try evaluates groups of rules over what was accepted since a time, as if they had been declared then, and returns the transitions in
// the order of their instants. It commits nothing and tells no receiver.
func (e *Evaluator) Try(ctx context.Context, groups []alerts.Group, since time.Time) ([]decide.Notice, error) {
	topics := map[string][]bound{}
	for i := range groups {
		for j := range groups[i].Rules {
			r := &groups[i].Rules[j]
			topics[r.Topic] = append(topics[r.Topic], bound{&groups[i], r})
		}
	}
	var out []decide.Notice
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		made, err := e.try(ctx, name, topics[name], since)
		if err != nil {
			return nil, err
		}
		out = append(out, made...)
	}
	slices.SortStableFunc(out, func(a, b decide.Notice) int { return cmp.Compare(a.At, b.At) })
	return out, nil
}

func (e *Evaluator) try(ctx context.Context, topic string, rules []bound, since time.Time) (made []decide.Notice, err error) {
	r := &run{e: e, tried: &made}
	if r.topic, err = e.cfg.Registry.Topic(ctx, topic); err != nil {
		return nil, err
	}
	window := r.bind(rules)
	r.state.Decided = decide.Instant(since.UnixNano())
	if r.at, err = e.firstOf(ctx, r.state.Decided, window); err != nil {
		return nil, err
	}
	upTo, err := e.cfg.Reader.RoutedUpTo(ctx, topic)
	if err != nil {
		return nil, err
	}
	for whole := false; !whole; {
		if whole, err = r.read(ctx); err != nil {
			return nil, err
		}
	}
	return made, r.decide(ctx, upTo.UnixNano())
}
