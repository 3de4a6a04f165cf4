package prometheus

import (
	"context"
	"math"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/storage"

	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Metadata is what the points of a metric say of it.
type Metadata struct {
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

// Metadata returns what is known of each metric of a topic, or of one.
func (s *Store) Metadata(ctx context.Context, topic, metric string) (map[string][]Metadata, error) {
	all, err := s.series.All(ctx, series.ListRequest{Topic: topic, Metric: metric, From: after(0).Add(1), To: upTo(math.MaxInt64)})
	if err != nil {
		return nil, err
	}
	out := map[string][]Metadata{}
	for i := range all {
		one := &all[i]
		m := Metadata{Type: typeOf(one.Points), Unit: one.Unit}
		if !slices.Contains(out[one.Metric], m) {
			out[one.Metric] = append(out[one.Metric], m)
		}
	}
	return out, nil
}

// typeOf is what Prometheus calls a metric with points of some kinds.
func typeOf(points []string) string {
	counter, gauge := slices.Contains(points, kinds.PointsCumulative), slices.Contains(points, kinds.PointsGauge)
	switch {
	case counter && !gauge:
		return "counter"
	case gauge && !counter:
		return "gauge"
	}
	return "unknown"
}

// LabelsOnly are the hints of a Select that reads series and none of their points.
func LabelsOnly(q storage.Querier) *storage.SelectHints {
	hints := &storage.SelectHints{Func: labelsOnly}
	if own, ok := q.(*querier); ok {
		hints.Start, hints.End = own.from, own.to
	}
	return hints
}

// labelsOnly is what Prometheus's own API gives as the function of such a Select.
const labelsOnly = "series"

// EngineVersion is the version of Prometheus whose engine this is, such as 3.16.0.
func EngineVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/prometheus/prometheus" {
			return releaseOf(d.Version)
		}
	}
	return ""
}

// releaseOf is the release that a version of the Go module is: v0.316.0 is 3.16.0.
func releaseOf(module string) string {
	parts := strings.Split(strings.TrimPrefix(module, "v0."), ".")
	if len(parts) != 2 || len(parts[0]) != 3 {
		return module
	}
	minor := strings.TrimPrefix(parts[0][1:], "0")
	if minor == "" {
		minor = "0"
	}
	return parts[0][:1] + "." + minor + "." + parts[1]
}
