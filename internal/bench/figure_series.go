package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/query/series"
)

// seriesSize is a size of a topic of kind metric.
type seriesSize struct{ series, points int }

// seriesBar is the size that the bars are of; seriesSizes are those of the table.
var (
	seriesBar   = seriesSize{1000, 10_000}
	seriesSizes = []seriesSize{{10, 10_000}, {100, 10_000}, seriesBar, {1000, 1000}, {1000, 100}, {10_000, 1000}}
)

// alignedSeries times the reads of series that have a bar, and how they grow with series and
// points.
func alignedSeries(ctx context.Context, s *Suite) ([]Figure, error) {
	h, err := s.Environment(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	cfg := s.config(h, Config{})
	grid := &Grid{Head: []string{"series", "points of each", "all to 60 s", "an hour of all", "one by its label"}}
	var out []Figure
	for i, size := range seriesSizes {
		s.Progress("", fmt.Sprintf("%d series of %d points", size.series, s.size(size.points)), i, len(seriesSizes))
		m, err := makeMetrics(ctx, &cfg, size.series, s.size(size.points))
		if err != nil {
			return nil, err
		}
		row := []string{count(size.series), count(s.size(size.points))}
		for j := range seriesReads {
			r := &seriesReads[j]
			ms, points, err := m.time(ctx, r, s.rounds(r.rounds))
			if errors.Is(err, series.ErrTooMuch) && size != seriesBar {
				row = append(row, "refused: too many points")
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s of %d series: %w", r.name, size.series, err)
			}
			row = append(row, withUnit(ms, r.unit))
			if size == seriesBar {
				out = append(out, atMost(r.name, r.what, ms, r.unit, r.bar, "%s points in %d parts of %d shards, all examined and listed; median of %d reads, %s aligned points each",
					count(size.series*s.size(size.points)), seriesShards*seriesInserts, seriesShards, s.rounds(r.rounds), count(points)))
			}
		}
		grid.Rows = append(grid.Rows, row)
	}
	out[len(out)-1].Grid = grid
	return out, nil
}
