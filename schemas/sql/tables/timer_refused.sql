-- The last timer of a group that is over says how its receiver is by now. Columns are named by their table: what is selected has names of theirs.
SELECT t.`group` AS `group`, countIf(t.state = 'failed') AS failed, toUnixTimestamp64Nano(max(t.ts)) AS at,
  argMax(t.status, (t.ts, t.seq)) AS status, argMax(t.error, (t.ts, t.seq)) AS error
FROM {{.Table}} AS t
WHERE t.ts >= now64(9) - toIntervalNanosecond({{.SpanNs}}) AND t.state IN ('done', 'failed')
GROUP BY t.`group`
HAVING argMax(t.state, (t.ts, t.seq)) = 'failed'
ORDER BY t.`group`
FORMAT JSONEachRow
