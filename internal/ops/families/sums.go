package families

import (
	"slices"

	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// sums are samples of which no two have the same labels: topics beyond the bound share one name.
type sums struct{ all []metrics.Sample }

// add adds a value to what is there.
func (s *sums) add(m *metrics.Metric, v float64, labels ...string) {
	of := s.of(m, labels)
	of.Value += v
}

// most keeps the larger value.
func (s *sums) most(m *metrics.Metric, v float64, labels ...string) {
	of := s.of(m, labels)
	of.Value = max(of.Value, v)
}

func (s *sums) of(m *metrics.Metric, labels []string) *metrics.Sample {
	if !slices.Contains(labels, metrics.Other) { // each topic is said once
		return s.push(m, labels)
	}
	for i := range s.all {
		if one := &s.all[i]; one.Of == m && slices.Equal(one.Labels, labels) {
			return one
		}
	}
	return s.push(m, labels)
}

func (s *sums) push(m *metrics.Metric, labels []string) *metrics.Sample {
	s.all = append(s.all, m.Is(0, labels...))
	return &s.all[len(s.all)-1]
}
