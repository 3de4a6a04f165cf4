SELECT series, w, {{.ValueSQL}} AS v
FROM ({{template "series/windows" .Points}})
GROUP BY series, w
HAVING sum(n) > 0{{template "series/refuse_cumulative" .Refuse}}
