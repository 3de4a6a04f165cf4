package series

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// refuse reports why a read of what was found cannot be answered, but for its size.
func (f *found) refuse(req *Request, s *selection) error {
	for _, label := range append(s.asked, req.By...) {
		if f.all > 0 && len(f.labels) < maxLabels && !slices.Contains(f.labels, label) && !isField(label) {
			return bad("metric %q has no series with the label %q in that range; its labels are %s", req.Metric, label, strings.Join(f.labels, ", "))
		}
	}
	if (req.Align == Delta || req.Align == Rate) && slices.Contains(f.points, kinds.PointsGauge) {
		return bad("align %s is of counters, and metric %q has points of kind %s", req.Align, req.Metric, kinds.PointsGauge)
	}
	return nil
}

func isField(label string) bool {
	return slices.Contains([]string{schemas.ColService, schemas.ColUserID, kinds.ColUnit}, label)
}

// size refuses a read that would touch or give too much.
func (r *Reader) size(ctx context.Context, s *selection, req *Request, f *found) error {
	if f.series > r.limits.series {
		return tooMuch("it touches %d series of metric %q, the limit is %d. %s", f.series, req.Metric, r.limits.series, r.narrower(ctx, s, f, float64(r.limits.series)))
	}
	rows, err := r.rows(ctx, s, s.begins(req))
	if err != nil {
		return err
	}
	if rows > r.limits.rows {
		return tooMuch("it reads about %d rows, the limit is %d. Take a shorter range. %s", rows, r.limits.rows, r.narrower(ctx, s, f, float64(f.series)*float64(r.limits.rows)/float64(rows)))
	}
	if req.Align == None {
		return nil
	}
	n := windows(req.From, req.To, req.Period)
	if values := n * f.series; f.series > 0 && n > r.limits.groups/f.series {
		return tooMuch("%d series and %d windows of %s are %d aligned values, the limit is %d. %s", f.series, n, req.Period, values, r.limits.groups, longer(req, f.series, r.limits.groups))
	}
	groups := f.groups
	if req.Reduce == None {
		groups = f.series
	}
	if groups > 0 && n > r.limits.points/groups {
		return tooMuch("%d groups and %d windows of %s may give %d points, the limit is %d. %s", groups, n, req.Period, n*groups, r.limits.points, longer(req, groups, r.limits.points))
	}
	return nil
}

// longer says which period would do.
func longer(req *Request, groups, limit int64) string {
	if p := fittingPeriod(req.From, req.To, groups, limit); p > 0 {
		return fmt.Sprintf("A period of %s fits; or take fewer groups, or a shorter range", p)
	}
	return "Take fewer groups, or a shorter range"
}

// begins is where a read of the points begins: delta and rate look for the point before.
func (s *selection) begins(req *Request) time.Time {
	if req.Align != Delta && req.Align != Rate {
		return s.from
	}
	return time.Unix(0, max(0, s.from.UnixNano()-int64(max(Lookback, req.Period))))
}

// rows is about how many rows a read of the points reads that begins at from: what ClickHouse's index says. Where
// all rows of the topic are few it is not asked.
func (r *Reader) rows(ctx context.Context, s *selection, from time.Time) (int64, error) {
	held := int64(0)
	for i := range s.snap.Shards {
		if sh := &s.snap.Shards[i]; !sh.Gone && sh.Stored.MaxTs > from.UnixNano() && sh.Stored.MinTs <= s.to.UnixNano() {
			held += int64(sh.Stored.Rows)
		}
	}
	if held <= r.limits.rows {
		return held, nil
	}
	cond := fmt.Sprintf("%s AND ts > fromUnixTimestamp64Nano(toInt64(%d), 'UTC') AND ts <= %s AND %s", s.named(), from.UnixNano(), sqlTo, s.snap.Held(once.Nowhere))
	if chosen := s.chosen(); chosen != "" {
		cond += " AND " + chosen
	}
	statement := sql.SeriesEstimate{Table: s.table(), Name: sql.QuoteText(s.snap.Topic.Name), Where: cond}.SQL()
	n := int64(0)
	err := r.lines(ctx, statement, s.params, func(row []string) (err error) {
		n, err = strconv.ParseInt(row[1], 10, 64)
		return err
	})
	return n, err
}

// maxHints bounds the labels that are offered.
const maxHints = 5

// narrower names labels of which each value has at most so many of the selected series, or
// pairs of labels when no one label does.
func (r *Reader) narrower(ctx context.Context, s *selection, f *found, limit float64) string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var hints []string
	hint := func(row []string) error {
		hints = append(hints, fmt.Sprintf("%s (%s values, at most %s series each)", row[0], row[1], row[2]))
		return nil
	}
	statement := sql.SeriesNarrower{Listed: s.listed(), Where: s.condition(), Series: limit, Limit: maxHints}
	for _, statement.Pairs = range []bool{false, true} {
		if err := r.lines(ctx, statement.SQL(), s.params, hint); err != nil {
			break // the refusal is the answer; what would do is a hint
		}
		if len(hints) > 0 {
			return "Narrow it with --where to one value of " + strings.Join(hints, ", or of ")
		}
	}
	if len(f.labels) == 0 {
		return "Narrow it with --where"
	}
	return "Narrow it with --where; its labels are " + strings.Join(f.labels, ", ")
}
