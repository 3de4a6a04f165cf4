-- k: the span, -1 before the range. w: weighted to the span's end.
SELECT type, toString(k), toString(sum(d)), toString(sum(w)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT type,
    if(t < {from:Int64}, toInt64(-1), {{if .ByMonth}}toInt64(toYYYYMM(fromUnixTimestamp64Milli(t, 'UTC'))){{else}}intDiv(t, 86400000){{end}}) AS k,
    sumIf(toInt128(delta), c) AS d, sumIf(toInt128(delta) * ({{template "usage/spans_end" .}} - t), c) AS w, countIf(c) AS ca, toUInt64(sum(rep)) AS re
  FROM ({{.Rows}})
  GROUP BY type, k
{{- $all := .}}
{{- range .Sums}}
  UNION ALL
  SELECT type,
    if(past, toInt64(-1), {{if $all.ByMonth}}toInt64(month){{else}}intDiv(day, 86400000){{end}}) AS k,
    sum(delta) AS d, sum(weighted + delta * ({{template "usage/spans_end" $all}} - mend)) AS w, sum(n) AS ca, sum(repeats) AS re
  FROM ({{.}})
  GROUP BY type, k
{{- end}})
WHERE {{.Unmoved}}
GROUP BY type, k
ORDER BY type, k
FORMAT JSONCompactEachRow
