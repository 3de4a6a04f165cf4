-- An attempt that began too late for its timer, and one that was rescheduled by hand, are not calls: neither has a
-- status, and the error of both is known. Columns are named by their table: what is selected has names of theirs.
SELECT t.`group` AS `group`, count() AS calls, countIf(t.state = 'done') AS done, countIf(t.state = 'failed') AS failed, countIf(t.state = 'retry') AS retry,
  countIf(t.state = 'rescheduled') AS rescheduled, round(quantile(0.5)(t.late_ms), 3) AS late_p50_ms, round(quantile(0.99)(t.late_ms), 3) AS late_p99_ms,
  round(quantile(0.99)(t.took_ms), 3) AS took_p99_ms
FROM {{.Table}} AS t
WHERE t.ts >= now64(9) - toIntervalNanosecond({{.SpanNs}}) AND t.state IN ('done', 'failed', 'retry', 'rescheduled')
  AND (t.status != 0 OR t.error NOT IN ('', 'too-late'))
GROUP BY t.`group`
ORDER BY t.`group`
FORMAT JSONEachRow
