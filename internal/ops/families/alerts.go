package families

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/registry"
)

// Rules is the source of how the rules of alerts are evaluated, by the registry.
func Rules(r *metrics.Registry, reg *registry.Registry) metrics.Source {
	m := alerts.New(reg, nil)
	return metrics.Paced("alerts", func(ctx context.Context) ([]metrics.Sample, error) {
		topics, err := m.Topics(ctx)
		if err != nil {
			return nil, err
		}
		return ofRules(r.Topics(), topics, time.Now()), nil
	}, frontApart)
}

// ofRules returns the numbers of the rules of each topic. Those of topics beyond the bound of labels are added up.
func ofRules(names *metrics.Names, all []alerts.TopicStatus, now time.Time) (out []metrics.Sample) {
	sums := map[string]alerts.TopicStatus{}
	for _, t := range all {
		name := names.Of(t.Topic)
		s, had := sums[name]
		if !had || t.UpTo.Before(s.UpTo) {
			s.UpTo = t.UpTo
		}
		s.Rules, s.Wrong, s.Pending, s.Firing = s.Rules+t.Rules, s.Wrong+t.Wrong, s.Pending+t.Pending, s.Firing+t.Firing
		sums[name] = s
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		out = append(out, metrics.AlertsRules.Is(float64(s.Rules), name), metrics.AlertsWrong.Is(float64(s.Wrong), name), metrics.AlertsPending.Is(float64(s.Pending), name),
			metrics.AlertsFiring.Is(float64(s.Firing), name), metrics.AlertsLag.Is(max(0, now.Sub(s.UpTo).Seconds()), name))
	}
	return out
}

// Evaluator counts what a process that evaluates rules does. Its methods are hooks of it.
type Evaluator struct {
	topics                        *metrics.Names
	rounds, transitions, failures *prometheus.CounterVec
	recorded, unrecorded          *prometheus.CounterVec
}

// NewEvaluator takes the numbers of an evaluator.
func NewEvaluator(r *metrics.Registry) *Evaluator {
	return &Evaluator{
		topics: r.Topics(), rounds: r.Counter(metrics.AlertsEvaluations), transitions: r.Counter(metrics.AlertsTransitions), failures: r.Counter(metrics.AlertsFailures),
		recorded: r.Counter(metrics.AlertsRecorded), unrecorded: r.Counter(metrics.AlertsUnrecorded),
	}
}

// Decided counts a round of a topic's rules that came to its end.
func (e *Evaluator) Decided(topic string, _ int, _ time.Time) {
	topic = e.topics.Of(topic)
	e.rounds.WithLabelValues(topic).Inc()
	e.failures.WithLabelValues(topic) // 0 is a number too
}

// Changed counts a transition.
func (e *Evaluator) Changed(n *decide.Notice) {
	e.transitions.WithLabelValues(e.topics.Of(n.Topic), string(n.To)).Inc()
}

// Recorded counts what a rule wrote at an instant, or that it did not.
func (e *Evaluator) Recorded(topic string, samples int, err error) {
	topic = e.topics.Of(topic)
	e.recorded.WithLabelValues(topic).Add(float64(samples))
	failed := e.unrecorded.WithLabelValues(topic) // 0 is a number too
	if err != nil {
		failed.Inc()
	}
}

// Fault counts what was tried again or left out.
func (e *Evaluator) Fault(topic string, _ error) {
	if topic != "" {
		topic = e.topics.Of(topic)
	}
	e.failures.WithLabelValues(topic).Inc()
}
