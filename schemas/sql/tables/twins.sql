-- A row is the same in every column but the position. The ids come first: they leave few rows to hash.
SELECT toString(a.id), toUnixTimestamp64Nano(a.ts), a.pos, b.there
FROM (
  SELECT id, ts, pos, sipHash128(* EXCEPT pos) AS _hash
  FROM {{.Table}}
  WHERE month = {{.Month}} AND shard = {{.Shard}} AND (pos, id, ts) IN ({{.Rows}})) AS a
INNER JOIN (
  SELECT pos AS there, sipHash128(* EXCEPT pos) AS _hash
  FROM {{.Table}}
  WHERE month = {{.Month}} AND shard = {{.Shard}}
    AND id IN (SELECT id FROM {{.Table}} WHERE month = {{.Month}} AND shard = {{.Shard}} AND (pos, id, ts) IN ({{.Rows}}))) AS b ON a._hash = b._hash
WHERE a.pos != b.there
FORMAT TSV
