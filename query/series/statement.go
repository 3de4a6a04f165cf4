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

// rows selects the points: val is the value, and n, s, lo, hi, q and mu what a point stands
// for: how many values, their sum, least, greatest, sum of squared deviations and mean.
func (s *selection) rows(from string) string {
	return fmt.Sprintf(`SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
 if(dist, toUInt64(count), 1) AS n, if(dist, sum, value) AS s, if(dist, min, value) AS lo, if(dist, max, value) AS hi, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu
FROM %s WHERE %s`, sql.QuotedTable(s.snap.Database, s.snap.Topic.Name), s.points(from))
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
		return quantile("series", s.windowed(req), level)
	case req.Align == Delta || req.Align == Rate:
		return s.increases(req)
	case req.Align == Summary:
		return "SELECT series, w, sum(n) AS an, sum(s) AS asum, minIf(lo, n > 0) AS alo, maxIf(hi, n > 0) AS ahi, " + deviationSQL + " AS aq FROM (" + s.windowed(req) + ") GROUP BY series, w HAVING an > 0" + s.refuseCumulative()
	}
	value := map[Aligner]string{
		Min: "minIf(lo, n > 0)", Max: "maxIf(hi, n > 0)", Mean: "sum(s) / sum(n)", Count: "toFloat64(sum(n))", Sum: "sum(s)",
		Stddev: "sqrt(" + deviationSQL + " / sum(n))",
	}[req.Align]
	if level != "" {
		value = "quantileExactInclusive(" + level + ")(val)" + refuseDistributions
	}
	return "SELECT series, w, " + value + " AS v FROM (" + s.windowed(req) + ") GROUP BY series, w HAVING sum(n) > 0" + s.refuseCumulative()
}

// refuseDistributions adds nothing to a number, and ends a read that has distributions.
const refuseDistributions = " + throwIf(max(dist), '" + textDistributions + "')"

// refuseCumulative ends a read that has cumulative distributions: what they grew by is to be read.
func (s *selection) refuseCumulative() string {
	if s.distributions {
		return ""
	}
	return " AND throwIf(max(dist AND kind = '" + kinds.PointsCumulative + "'), '" + textDistributions + "') = 0"
}

// deviationSQL is the sum of squared deviations from the mean of a group: stable where every
// point is one value.
const deviationSQL = "if(max(dist), greatest(sum(q) + sum(n * mu * mu) - sum(s) * sum(s) / sum(n), 0.), varPopStable(val) * count())"

func (s *selection) windowed(req *Request) string {
	rows := s.rows(sqlFrom)
	if s.distributions {
		rows = s.grown(req)
	}
	return "SELECT *, " + windowSQL(req) + " AS w FROM (" + rows + ")"
}

// increases selects what counters grew by: of a point of kind delta its value, of others the
// difference to the point before, or the value after a reset.
func (s *selection) increases(req *Request) string {
	s.params["before"] = strconv.FormatInt(s.begins(req).UnixNano(), 10)
	value := "sum(grown)"
	if req.Align == Rate {
		value += " / " + strconv.FormatFloat(req.Period.Seconds(), 'f', -1, 64)
	}
	before := fmt.Sprintf(`SELECT series, t, val, began, kind, dist, lagInFrame(t, 1, toInt64(-1)) OVER o AS t0, lagInFrame(val) OVER o AS val0, lagInFrame(began) OVER o AS began0
FROM (%s) WINDOW o AS (PARTITION BY series ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)`, s.rows("fromUnixTimestamp64Nano({before:Int64}, 'UTC')"))
	grown := fmt.Sprintf("multiIf(kind = '%s', val, t0 < 0, NULL, val < val0 OR began != began0 AND began > 0 AND began0 > 0, val, val - val0)", kinds.PointsDelta)
	return "SELECT series, w, assumeNotNull(" + value + ")" + refuseDistributions + " AS v FROM (SELECT series, dist, " + windowSQL(req) + " AS w, " + grown + " AS grown FROM (" + before + ") WHERE t > {from:Int64}) WHERE grown IS NOT NULL GROUP BY series, w"
}

// statement is the read's statement, whose rows are as rowReader reads them: the group's key, which is the
// series, or unit and labels; the time; and a value, or of whole rows all of wholeSQL.
func (s *selection) statement(req *Request, limit int64) string {
	tail := fmt.Sprintf(" LIMIT %d FORMAT RowBinary", limit+1)
	switch {
	case req.Align == None:
		return "SELECT series, t, toUInt8(dist), toFloat64(val), " + wholeSQL("n", "s", "lo", "hi", "q") + " FROM (" + s.rows(sqlFrom) + ") ORDER BY series, t" + tail
	case req.Reduce == None && req.Align == Summary:
		return "SELECT series, toInt64(w), " + summarySQL("an", "asum", "alo", "ahi", "aq") + " FROM (" + s.aligned(req) + ") ORDER BY series, w" + tail
	case req.Reduce == None:
		return "SELECT series, toInt64(w), toFloat64(v) FROM (" + s.aligned(req) + ") ORDER BY series, w" + tail
	}
	keys, groups := []string{unitSQL(req) + " AS g0"}, []string{"g0"}
	for i, label := range req.By {
		keys, groups = append(keys, labelSQL(label, s.params)+" AS g"+strconv.Itoa(i+1)), append(groups, "g"+strconv.Itoa(i+1))
	}
	group, level := strings.Join(groups, ", "), percentiles[req.Reduce]
	ofPoints := req.Align == Summary && level != "" // of all points of a group, and not of a value a series
	of := s.aligned
	if ofPoints {
		of = s.windowed
	}
	joined := fmt.Sprintf("SELECT %s, a.* FROM (%s) AS a INNER JOIN (SELECT series, %s FROM (%s) WHERE %s) AS l ON a.series = l.series",
		group, of(req), strings.Join(keys, ", "), s.listed(), s.condition())
	if ofPoints {
		return fmt.Sprintf("SELECT toJSONString([%s]), toInt64(w), toFloat64(v) FROM (%s) ORDER BY %s, w%s", textsSQL(groups), s.percentile(group, joined, level), group, tail)
	}
	value := s.reduced(req)
	if req.Align == Summary {
		joined = fmt.Sprintf("SELECT *, sum(asum) OVER (PARTITION BY %s, w) / sum(an) OVER (PARTITION BY %s, w) AS gm FROM (%s)", group, group, joined)
	}
	return fmt.Sprintf("SELECT toJSONString([%s]), toInt64(w), %s FROM (%s) GROUP BY %s, w ORDER BY %s, w%s", textsSQL(groups), value, joined, group, group, tail)
}

// percentile selects a percentile of all points of each group and window.
func (s *selection) percentile(group, joined, level string) string {
	if s.distributions {
		return quantile(group, joined, level)
	}
	return fmt.Sprintf("SELECT %s, w, quantileExactInclusive(%s)(val)%s AS v FROM (%s) GROUP BY %s, w", group, level, refuseDistributions, joined, group)
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
