package series

import (
	"context"
	"slices"
)

// MaxMetrics bounds the metrics of one answer.
const MaxMetrics = 16

// AlignEach reads the points of several metrics, one after the other, each as Align does. The groups of the answer
// name their metric. All of its points are bounded together.
func (r *Reader) AlignEach(ctx context.Context, req Request, metrics []string) (*Answer, error) {
	switch {
	case len(metrics) == 1:
		req.Metric = metrics[0]
		return r.Align(ctx, req)
	case len(metrics) == 0:
		return r.Align(ctx, req) // which says what is missing
	case len(metrics) > MaxMetrics:
		return nil, bad("%d metrics, the limit is %d", len(metrics), MaxMetrics)
	}
	var all *Answer
	left := r.limits.points
	for i, name := range metrics {
		if slices.Contains(metrics[:i], name) {
			return nil, bad("metric %q is named twice", name)
		}
		req.Metric = name
		a, err := r.Align(ctx, req)
		if err != nil {
			return nil, err
		}
		for k := range a.Groups {
			a.Groups[k].Metric = name
			left -= int64(len(a.Groups[k].Points))
		}
		if left < 0 {
			return nil, tooMuch("%d metrics give more than %d points. Take fewer of them, a longer period, or a shorter range", len(metrics), r.limits.points)
		}
		if all == nil {
			all = a
			all.Metric, all.Metrics = "", metrics
			continue
		}
		all.Series, all.Groups = all.Series+a.Series, append(all.Groups, a.Groups...)
	}
	return all, nil
}
