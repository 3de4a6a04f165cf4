package families

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/timers"
)

// maxGroups bounds the groups of a family: a page of 200 groups is some 200 KB.
const maxGroups = 200

// frontApart is how far apart the reads of the front begin at least.
const frontApart = 10 * time.Second

// Timers is the source of what the front TIMERS holds. open opens the timers of a topic; they are kept.
func Timers(reg *registry.Registry, open func(ctx context.Context, topic string) (*timers.Timers, error)) metrics.Source {
	f := &front{reg: reg, open: open, known: map[string]*timers.Timers{}}
	return metrics.Paced("front", f.read, frontApart)
}

type front struct {
	reg   *registry.Registry
	open  func(ctx context.Context, topic string) (*timers.Timers, error)
	known map[string]*timers.Timers // read by one at a time
}

// read reads how the timers of every topic are.
func (f *front) read(ctx context.Context) ([]metrics.Sample, error) {
	topics, err := f.reg.Topics(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]*timers.Timers{}
	var all []topicStatus
	for i := range topics {
		if topics[i].Kind != kinds.Timer {
			continue
		}
		name := topics[i].Name
		t, err := f.opened(ctx, name)
		if err != nil {
			return nil, err
		}
		groups, err := t.Status(ctx)
		if err != nil {
			return nil, err
		}
		known[name] = t
		all = append(all, topicStatus{name, groups})
	}
	f.known = known
	return ofFront(all), nil
}

// opened returns the timers of a topic, which stay open while their topic is the same: what they know of groups
// would be read again.
func (f *front) opened(ctx context.Context, topic string) (*timers.Timers, error) {
	if t := f.known[topic]; t != nil {
		if current, err := t.Current(ctx); err != nil || current {
			return t, err
		}
	}
	return f.open(ctx, topic)
}

// topicStatus is what the front has of a topic.
type topicStatus struct {
	topic  string
	groups []timers.Status
}

// ofFront returns the numbers of what the front holds.
func ofFront(topics []topicStatus) (out []metrics.Sample) {
	var other timers.Status
	n := 0
	for _, t := range sorted(topics, func(t topicStatus) string { return t.topic }) {
		for _, g := range sorted(t.groups, func(g timers.Status) string { return g.Group }) {
			if n++; n > maxGroups {
				other.Pending += g.Pending
				other.Firing += g.Firing
				other.Overdue += g.Overdue
				other.OldestSeconds = max(other.OldestSeconds, g.OldestSeconds)
				continue
			}
			out = append(ofGroup(out, t.topic, &g), metrics.TimersLargestSlots.Is(g.LargestSlot, t.topic, g.Group),
				metrics.TimersGroupPaused.Is(map[bool]float64{true: 1}[g.Paused], t.topic, g.Group))
		}
	}
	if n > maxGroups {
		other.Group = dispatch.OtherGroup
		out = ofGroup(out, "", &other)
	}
	return out
}

func ofGroup(out []metrics.Sample, topic string, g *timers.Status) []metrics.Sample {
	return append(out, metrics.TimersPending.Is(float64(g.Pending), topic, g.Group), metrics.TimersFiring.Is(float64(g.Firing), topic, g.Group),
		metrics.TimersOverdue.Is(float64(g.Overdue), topic, g.Group), metrics.TimersOldest.Is(g.OldestSeconds, topic, g.Group))
}

func sorted[T any](all []T, by func(T) string) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int { return strings.Compare(by(a), by(b)) })
}
