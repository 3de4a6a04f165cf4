package series

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// textDistributions is the text of the assertion that a read has no distributions.
const textDistributions = "almanac: points are distributions"

// rows selects the points after an instant.
func (s *selection) rows(from string) sql.SeriesPoints {
	return sql.SeriesPoints{Table: s.table(), Where: s.points(from)}
}

func (s *selection) table() string {
	return sql.QuotedTable(s.snap.Database, s.snap.Topic.Name)
}

// windowSQL is the end of the window that the instant t lies in, in Unix ns.
func windowSQL(req *Request) string {
	p := strconv.FormatInt(int64(req.Period), 10)
	return "intDiv(t + " + p + " - 1, " + p + ") * " + p
}

// aligned selects one row a series and window w: v, or of summaries n, s, lo, hi, q and mu.
func (s *selection) aligned(req *Request) string {
	level := percentiles[req.Align]
	switch {
	case s.distributions && (req.Align == Delta || req.Align == Rate):
		return s.growth(req)
	case s.distributions && level != "":
		return sql.SeriesQuantile{Keys: "series", Rows: s.windowed(req).SQL(), Level: level}.SQL()
	case req.Align == Delta || req.Align == Rate:
		return s.increases(req)
	case req.Align == Summary:
		return sql.SeriesSummaries{Points: s.windowed(req), DeviationSQL: deviationSQL, Refuse: s.refuseCumulative()}.SQL()
	}
	value := map[Aligner]string{
		Min: "minIf(lo, n > 0)", Max: "maxIf(hi, n > 0)", Mean: "sum(s) / sum(n)", Count: "toFloat64(sum(n))", Sum: "sum(s)",
		Stddev: "sqrt(" + deviationSQL + " / sum(n))",
	}[req.Align]
	if level != "" {
		value = "quantileExactInclusive(" + level + ")(val)" + refuseDistributions
	}
	return sql.SeriesAligned{Points: s.windowed(req), ValueSQL: value, Refuse: s.refuseCumulative()}.SQL()
}

// refuseDistributions adds nothing to a number, and ends a read that has distributions.
const refuseDistributions = " + throwIf(max(dist), '" + textDistributions + "')"

// refuseCumulative is the text that ends a read which has cumulative distributions, of which what they grew by is to be
// read: "" where it is.
func (s *selection) refuseCumulative() string {
	if s.distributions {
		return ""
	}
	return textDistributions
}

// deviationSQL is the sum of squared deviations from the mean of a group: stable where every
// point is one value.
const deviationSQL = "if(max(dist), greatest(sum(q) + sum(n * mu * mu) - sum(s) * sum(s) / sum(n), 0.), varPopStable(val) * count())"

func (s *selection) windowed(req *Request) sql.SeriesWindows {
	w := sql.SeriesWindows{WindowSQL: windowSQL(req)}
	if s.distributions {
		w.Points = s.grown(req).SQL()
	} else {
		w.Points = s.rows(sqlFrom).SQL()
	}
	return w
}

// increases selects what counters grew by.
func (s *selection) increases(req *Request) string {
	s.params["before"] = strconv.FormatInt(s.begins(req).UnixNano(), 10)
	return sql.SeriesIncreases{
		Points: s.rows(sqlBefore), WindowSQL: windowSQL(req), ValueSQL: "sum(grown)" + perSecond(req),
		Delta: kinds.PointsDelta, Distributions: refuseDistributions,
	}.SQL()
}

// perSecond makes a rate of what a counter grew by.
func perSecond(req *Request) string {
	if req.Align != Rate {
		return ""
	}
	return " / " + strconv.FormatFloat(req.Period.Seconds(), 'f', -1, 64)
}

// statement is the read's statement, whose rows are as rowReader reads them: the group's key, which is the
// series, or unit and labels; the time; and a value, or of whole rows all of wholeSQL.
func (s *selection) statement(req *Request, limit int64) string {
	limit++
	switch {
	case req.Align == None:
		return sql.SeriesAnswer{At: "t", AtSQL: "t", ValuesSQL: "toUInt8(dist), toFloat64(val), " + wholeSQL("n", "s", "lo", "hi", "q"), Rows: s.rows(sqlFrom).SQL(), Limit: limit}.SQL()
	case req.Reduce == None && req.Align == Summary:
		return sql.SeriesAnswer{At: "w", AtSQL: "toInt64(w)", ValuesSQL: summarySQL("an", "asum", "alo", "ahi", "aq"), Rows: s.aligned(req), Limit: limit}.SQL()
	case req.Reduce == None:
		return sql.SeriesAnswer{At: "w", AtSQL: "toInt64(w)", ValuesSQL: "toFloat64(v)", Rows: s.aligned(req), Limit: limit}.SQL()
	}
	keys, groups := []string{unitSQL(req) + " AS g0"}, []string{"g0"}
	for i, label := range req.By {
		keys, groups = append(keys, labelSQL(label, s.params)+" AS g"+strconv.Itoa(i+1)), append(groups, "g"+strconv.Itoa(i+1))
	}
	group, level := strings.Join(groups, ", "), percentiles[req.Reduce]
	joined := sql.SeriesJoined{Groups: group, KeysSQL: strings.Join(keys, ", "), Listed: s.listed(), Where: s.condition()}
	answer := sql.SeriesGroups{Groups: group, TextsSQL: textsSQL(groups), Limit: limit}
	if req.Align == Summary && level != "" { // of all points of a group, and not of a value a series
		joined.Rows = s.windowed(req).SQL()
		answer.ValuesSQL, answer.Rows, answer.Reduced = "toFloat64(v)", s.percentile(group, joined.SQL(), level), true
		return answer.SQL()
	}
	joined.Rows, joined.Means = s.aligned(req), req.Align == Summary
	answer.ValuesSQL, answer.Rows = s.reduced(req), joined.SQL()
	return answer.SQL()
}

// percentile selects a percentile of all points of each group and window.
func (s *selection) percentile(group, joined, level string) string {
	if s.distributions {
		return sql.SeriesQuantile{Keys: group, Rows: joined, Level: level}.SQL()
	}
	return sql.SeriesPercentile{Keys: group, Rows: joined, Level: level, Distributions: refuseDistributions}.SQL()
}

// unitSQL is the unit of groups: counts have none of their own, so that those of all units are
// one group.
func unitSQL(req *Request) string {
	if req.Align == Count || req.Reduce == Count {
		return "''"
	}
	return "unit"
}

func textsSQL(names []string) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = "toString(" + n + ")"
	}
	return strings.Join(texts, ", ")
}

// wholeSQL are count, sum, least, greatest and m2 as they are read.
func wholeSQL(count, sum, least, greatest, m2 string) string {
	return fmt.Sprintf("toUInt64(%s), toFloat64(%s), toFloat64(%s), toFloat64(%s), toFloat64(%s)", count, sum, least, greatest, m2)
}

// summarySQL is a distribution, which does not have a value.
func summarySQL(count, sum, least, greatest, m2 string) string {
	return "toUInt8(1), toFloat64(0), " + wholeSQL(count, sum, least, greatest, m2)
}

// reduced is the value of a group's aligned values, or all that a distribution has.
func (s *selection) reduced(req *Request) string {
	if req.Align == Summary {
		const m2 = "sum(aq + an * (asum / an - gm) * (asum / an - gm))"
		if req.Reduce == Summary {
			return summarySQL("sum(an)", "sum(asum)", "min(alo)", "max(ahi)", m2)
		}
		return "toFloat64(" + map[Aligner]string{Mean: "sum(asum) / sum(an)", Min: "min(alo)", Max: "max(ahi)", Sum: "sum(asum)", Count: "sum(an)", Stddev: "sqrt(" + m2 + " / sum(an))"}[req.Reduce] + ")"
	}
	if req.Reduce == Summary {
		return summarySQL("count()", "sum(v)", "min(v)", "max(v)", "varPopStable(v) * count()")
	}
	if level := percentiles[req.Reduce]; level != "" {
		return "toFloat64(quantileExactInclusive(" + level + ")(v))"
	}
	return "toFloat64(" + map[Aligner]string{Mean: "avg(v)", Min: "min(v)", Max: "max(v)", Sum: "sum(v)", Count: "count()", Stddev: "sqrt(varPopStable(v))"}[req.Reduce] + ")"
}
