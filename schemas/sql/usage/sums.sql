-- day is a column of days.sql, which stands beside it.
SELECT type, provider, space, user_id, month,
  {{if .Past}}(month, shard) IN ({{.Past}}){{else}}false{{end}} AS past,
  toInt64(0) AS day, n, repeats, delta, weighted, {{.EndsSQL}} AS mend
FROM {{.Sums}}
WHERE (month, shard) IN ({{.Shards}}) AND {{.Where}}
