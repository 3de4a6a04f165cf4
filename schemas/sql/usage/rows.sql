-- c: the row counts. rep: how many copies it stands for that do not, which of a row is itself.
SELECT type, provider, space, user_id, cause, id, ts, toUnixTimestamp64Milli(ts) AS t, delta,
  NOT ({{.Again}}) AS c, toUInt64(NOT c) AS rep, month, shard, pos
FROM {{.Table}}
WHERE {{.Where}}
