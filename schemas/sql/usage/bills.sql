-- b: the size before the range; s: at its end; u: over time. cb, ca: causes before it and in all; re: repeats.
-- Numbers go as texts: they are of 128 bits.
SELECT {{.Keys}}, toString(sum(b)), toString(sum(s)), toString(sum(u)), toString(sum(cb)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT {{.Keys}}, sumIf(toInt128(delta), c AND t < {from:Int64}) AS b, sumIf(toInt128(delta), c) AS s,
    sumIf(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64})), c) AS u,
    countIf(c AND t < {from:Int64}) AS cb, countIf(c) AS ca, toUInt64(sum(rep)) AS re
  FROM ({{.Rows}})
  GROUP BY {{.Keys}}
{{- $keys := .Keys}}
{{- range .Sums}}
  UNION ALL
  SELECT {{$keys}}, sumIf(delta, past) AS b, sum(delta) AS s,
    -- Weighted to the month's end; from there on to the range's end all of it counts.
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM ({{.}})
  GROUP BY {{$keys}}
{{- end}})
WHERE {{.Unmoved}}
GROUP BY {{.Keys}}
HAVING sum(ca) + sum(re) > 0
ORDER BY {{.Keys}}
FORMAT JSONCompactEachRow
