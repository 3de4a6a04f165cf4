package series

import (
	"strconv"

	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Statements over distributions come second: the first one ends at textDistributions where it
// meets a point that needs them.

// grown selects points as rows does, cumulative distributions as what they grew by.
func (s *selection) grown(req *Request) sql.SeriesGrown {
	s.params["before"] = strconv.FormatInt(s.begins(req).UnixNano(), 10)
	return sql.SeriesGrown{Points: sql.SeriesBuckets{Table: s.table(), Where: s.points(sqlBefore)}, CumulativeSQL: "kind " + cumulativeSQL(req)}
}

// cumulativeSQL is which kinds of distributions count up. One whose kind is not known is of its own
// time, but for aligners of counters.
func cumulativeSQL(req *Request) string {
	if req.Align == Delta || req.Align == Rate {
		return "!= '" + kinds.PointsDelta + "'"
	}
	return "= '" + kinds.PointsCumulative + "'"
}

// growth is the values that counters of distributions grew by, and that a second.
func (s *selection) growth(req *Request) string {
	return sql.SeriesGrowth{Points: s.grown(req), WindowSQL: windowSQL(req), ValueSQL: "sum(n)" + perSecond(req)}.SQL()
}
