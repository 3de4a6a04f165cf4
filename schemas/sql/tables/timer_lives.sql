SELECT t.life AS life, t.revision AS revision, argMaxIf(t.spec, t.seq, t.spec != '') AS spec, argMax(t.user_id, t.seq) AS user_id,
  toUnixTimestamp64Nano(minIf(t.ts, t.state = '{{.Created}}')) AS created_at, toUnixTimestamp64Nano(minIf(t.ts, t.state = '{{.Firing}}')) AS first
FROM {{.Table}} AS t
WHERE {{.Where}} AND t.life IN {lives:Array(String)}
GROUP BY life, revision
ORDER BY life, revision
FORMAT JSONEachRow
