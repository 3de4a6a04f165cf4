package families

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/schemas"
)

// Dispatcher is the source of a dispatcher's numbers.
func Dispatcher(d *dispatch.Dispatcher) metrics.Source {
	return metrics.Paced("dispatcher", func(ctx context.Context) ([]metrics.Sample, error) {
		waiting, err := d.Waiting(ctx)
		if err != nil {
			return nil, err
		}
		return ofDispatcher(waiting, d.Stats()), nil
	}, time.Second)
}

// ofDispatcher returns the numbers of one dispatcher.
func ofDispatcher(waiting []dispatch.Waiting, s dispatch.Stats) (out []metrics.Sample) {
	var other dispatch.Waiting
	for i, w := range waiting {
		if i >= maxGroups {
			other.Pending += w.Pending
			other.Blocked += w.Blocked
			other.Overdue += w.Overdue
			other.Oldest = max(other.Oldest, w.Oldest)
			continue
		}
		out = append(ofWaiting(out, &w), metrics.DispatcherLargestSlots.Is(w.LargestSlot, w.Topic, w.Group))
	}
	if len(waiting) > maxGroups {
		other.Group = dispatch.OtherGroup
		out = ofWaiting(out, &other)
	}
	for _, c := range s.Calls {
		out = append(out, metrics.DispatcherCalls.Is(float64(c.Count), c.Topic, c.Group, string(c.Result)))
		if c.Topic == schemas.TopicAlertCalls {
			out = append(out, metrics.AlertsCalls.Is(float64(c.Count), c.Group, string(c.Result)))
		}
	}
	for what, n := range s.Errors {
		out = append(out, metrics.DispatcherCallErrors.Is(float64(n), what))
	}
	return out
}

func ofWaiting(out []metrics.Sample, w *dispatch.Waiting) []metrics.Sample {
	return append(out, metrics.DispatcherPending.Is(float64(w.Pending), w.Topic, w.Group), metrics.DispatcherBlocked.Is(float64(w.Blocked), w.Topic, w.Group),
		metrics.DispatcherOverdue.Is(float64(w.Overdue), w.Topic, w.Group), metrics.DispatcherOldest.Is(w.Oldest.Seconds(), w.Topic, w.Group))
}
