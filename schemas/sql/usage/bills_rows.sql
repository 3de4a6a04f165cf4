-- b: the size before the range; s: at its end; u: over time. cb, ca: causes before it and in all; re: repeats.
{{if .All -}}
SELECT {{.Keys}}, sumIf(toInt128(delta), t < {from:Int64}) AS b, sum(toInt128(delta)) AS s,
  sum(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64}))) AS u,
  countIf(t < {from:Int64}) AS cb, count() AS ca, toUInt64(sum(rep)) AS re
{{- else -}}
SELECT {{.Keys}}, sumIf(toInt128(delta), c AND t < {from:Int64}) AS b, sumIf(toInt128(delta), c) AS s,
  sumIf(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64})), c) AS u,
  countIf(c AND t < {from:Int64}) AS cb, countIf(c) AS ca, toUInt64(sum(rep)) AS re
{{- end}}
FROM ({{.Rows}})
GROUP BY {{.Keys}}
