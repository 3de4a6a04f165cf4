SELECT series, w, sum(n) AS an, sum(s) AS asum, minIf(lo, n > 0) AS alo, maxIf(hi, n > 0) AS ahi, {{.DeviationSQL}} AS aq
FROM ({{template "series/windows" .Points}})
GROUP BY series, w
HAVING an > 0{{template "series/refuse_cumulative" .Refuse}}
