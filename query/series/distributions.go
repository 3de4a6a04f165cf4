package series

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Statements over distributions come second: the first one ends at textDistributions where it
// meets a point that needs them.

// sourceSQL is a point with its buckets: bk are their ends, rising, and bc how many values each
// has. A value is a bucket of its own; a distribution without buckets is one, and of one
// without least and greatest they are the ends of the buckets that have values.
const sourceSQL = `SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
 if(dist, toFloat64(count), 1.) AS n, if(dist, sum, value) AS s, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu,
 if(dist AND buckets != '', arrayPushBack(JSONExtract(buckets, 'bounds', 'Array(Float64)'), inf), [if(dist, max, value)]) AS bk,
 if(dist AND buckets != '', arrayMap(c -> toFloat64(c), JSONExtract(buckets, 'counts', 'Array(UInt64)')), [n]) AS bc,
 (dist AND buckets != '' AND min = 0 AND max = 0 AND sum != 0) AS open, arrayFirstIndex(c -> c > 0, bc) AS b1, arrayLastIndex(c -> c > 0, bc) AS b2,
 multiIf(NOT dist, value, NOT open, min, b1 > 1, bk[b1 - 1], least(bk[1], 0.)) AS lo,
 multiIf(NOT dist, value, NOT open, max, bk[b2] = inf, bk[greatest(b2 - 1, 1)], bk[b2]) AS hi
FROM %s WHERE %s`

// grownSQL is what cumulative distributions grew by since the point before: a lower count or
// another start is a reset, and then it is all. Buckets whose bounds changed are taken in
// proportion.
const grownSQL = `SELECT series, t, dist, kind, val, cum, fresh, if(whole, n, greatest(n - n0, 0.)) AS gn, if(whole, s, s - s0) AS gs, if(gn = 0, 0., gs / gn) AS gmu,
 if(whole, q, greatest(q - q0 - if(n = 0, 0., n0 * gn / n * (gmu - mu0) * (gmu - mu0)), 0.)) AS gq, bk,
 multiIf(whole, bc, arraySum(arrayMap((b, c) -> if(has(bk, b), c, 0.), bk0, bc0)) = arraySum(bc0), arrayMap((b, c) -> greatest(c - if(has(bk0, b), arrayElement(bc0, indexOf(bk0, b)), 0.), 0.), bk, bc),
  arrayMap(c -> if(n = 0, 0., c * gn / n), bc)) AS gc, arrayFirstIndex(c -> c > 0, gc) AS g1, arrayLastIndex(c -> c > 0, gc) AS g2,
 if(whole OR g1 <= 1, lo, greatest(lo, bk[g1 - 1])) AS glo, if(whole OR g2 = 0, hi, least(hi, bk[g2])) AS ghi
FROM (SELECT *, dist AND %s AS cum, t0 < 0 AS fresh, NOT cum OR n < n0 OR began != began0 AND began > 0 AND began0 > 0 AS whole
 FROM (SELECT *, lagInFrame(t, 1, toInt64(-1)) OVER o AS t0, lagInFrame(n) OVER o AS n0, lagInFrame(s) OVER o AS s0, lagInFrame(q) OVER o AS q0, lagInFrame(mu) OVER o AS mu0,
  lagInFrame(began) OVER o AS began0, lagInFrame(bk) OVER o AS bk0, lagInFrame(bc) OVER o AS bc0
  FROM (%s) WINDOW o AS (PARTITION BY series, dist ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)))`

// grown selects points as rows does, cumulative distributions as what they grew by. A series' first
// point has no growth.
func (s *selection) grown(req *Request) string {
	s.params["before"] = strconv.FormatInt(s.begins(req).UnixNano(), 10)
	source := fmt.Sprintf(sourceSQL, sql.QuotedTable(s.snap.Database, s.snap.Topic.Name), s.points("fromUnixTimestamp64Nano({before:Int64}, 'UTC')"))
	return "SELECT series, t, dist, kind, val, gn AS n, gs AS s, gq AS q, gmu AS mu, glo AS lo, ghi AS hi, bk, gc AS bc FROM (" +
		fmt.Sprintf(grownSQL, "kind "+cumulativeSQL(req), source) + ") WHERE t > {from:Int64} AND NOT (cum AND fresh)"
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
	value := "sum(n)"
	if req.Align == Rate {
		value += " / " + strconv.FormatFloat(req.Period.Seconds(), 'f', -1, 64)
	}
	return "SELECT series, w, " + value + " AS v FROM (SELECT series, n, " + windowSQL(req) + " AS w FROM (" + s.grown(req) + ") WHERE dist) GROUP BY series, w"
}

// quantile selects a percentile of the values in buckets of rows, of each group by keys and window. It takes values
// to lie evenly between the ends of their bucket, and none beyond the least and greatest.
func quantile(keys, rows, level string) string {
	const steps = `SELECT {keys}, w, alo, ahi, arraySort(bounds) AS ks, arrayMap(b -> if(has(m.1, b), arrayElement(m.2, indexOf(m.1, b)), 0.), ks) AS cs, arrayCumSum(cs) AS sums, {level} * sums[-1] AS target,
 arrayFirstIndex(x -> x >= target, sums) AS i, greatest(alo, if(i > 1, ks[i - 1], alo)) AS low, greatest(low, least(ahi, ks[i])) AS high,
 least(ahi, greatest(alo, low + (high - low) * (target - (sums[i] - cs[i])) / cs[i])) AS v
FROM (SELECT {keys}, w, minIf(lo, n > 0) AS alo, maxIf(hi, n > 0) AS ahi, groupUniqArrayArray(bk) AS bounds, sumMap(bk, bc) AS m FROM ({rows}) GROUP BY {keys}, w HAVING sum(n) > 0)`
	return strings.NewReplacer("{keys}", keys, "{level}", level, "{rows}", rows).Replace("SELECT {keys}, w, v FROM (" + steps + ")")
}
