SELECT table, toString(sum(rows))
FROM (EXPLAIN ESTIMATE SELECT series, ts, value FROM {{.Table}} WHERE {{.Where}})
WHERE table = {{.Name}}
GROUP BY table
FORMAT JSONCompactEachRow
