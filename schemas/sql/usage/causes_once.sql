-- The least time and id of a cause counts, not the first that arrived.
SELECT type, provider, space, tupleElement(first, 5) AS user_id, cause, tupleElement(first, 3) AS id, tupleElement(first, 1) AS ts,
  toUnixTimestamp64Milli(ts) AS t, tupleElement(first, 4) AS delta, NOT tupleElement(first, 6) AS c, n - toUInt8(c) AS rep
  {{- if .Places}}, tupleElement(first, 7) AS month, tupleElement(first, 8) AS shard, tupleElement(first, 9) AS pos{{end}}
FROM (
  SELECT type, provider, space, cause,
    min((ts, toUInt128(id), id, delta, user_id, {{.AfterDropped}}{{if .Places}}, month, shard, pos{{end}})) AS first, count() AS n
  FROM {{.Table}}
  WHERE {{.Where}}
  GROUP BY type, provider, space, cause)
