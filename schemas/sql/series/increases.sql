-- What ends in 0 is of the point before; a series' first point has none, and no growth.
SELECT series, w, assumeNotNull({{.ValueSQL}}){{.Distributions}} AS v
FROM (
  SELECT series, dist, {{.WindowSQL}} AS w,
    multiIf(kind = '{{.Delta}}', val, t0 < 0, NULL, val < val0 OR began != began0 AND began > 0 AND began0 > 0, val, val - val0) AS grown
  FROM (
    SELECT series, t, val, began, kind, dist, lagInFrame(t, 1, toInt64(-1)) OVER o AS t0, lagInFrame(val) OVER o AS val0, lagInFrame(began) OVER o AS began0
    FROM ({{template "series/points" .Points}})
    WINDOW o AS (PARTITION BY series ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))
  WHERE t > {from:Int64})
WHERE grown IS NOT NULL
GROUP BY series, w
