package alerttest

import (
	"context"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Firing evaluates rules again and again from one time to another, as Prometheus does, and adds ALERTS to the samples.
func (s *Samples) Firing(ctx context.Context, rules []Rule, from, to time.Time, every time.Duration) error {
	since := map[string]time.Time{} // by rule and labels: when the expression became true
	said := map[string]labels.Labels{}
	for at := from; !at.After(to); at = at.Add(every) {
		now, says := map[string]time.Time{}, map[string]labels.Labels{}
		for i := range rules {
			r := &rules[i]
			found, err := s.Eval(ctx, r.Expr, at)
			if err != nil {
				return err
			}
			for _, f := range found {
				b := labels.NewBuilder(f.Metric).Del(model.MetricNameLabel).Set("alertname", r.Alert)
				for k, v := range r.Labels {
					b.Set(k, v)
				}
				key := b.Labels().String()
				began, before := since[key]
				if !before {
					began = at
				}
				now[key] = began
				state := "pending"
				if at.Sub(began) >= r.For {
					state = "firing"
				}
				of := b.Set(model.MetricNameLabel, "ALERTS").Set("alertstate", state).Labels()
				says[of.String()] = of
				s.Add(of, at, 1)
			}
		}
		for key, of := range said {
			if says[key].IsEmpty() {
				s.Add(of, at, gone)
			}
		}
		since, said = now, says
	}
	return nil
}
