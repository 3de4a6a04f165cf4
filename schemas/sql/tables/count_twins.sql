-- As in twins.sql.
SELECT toUInt64(countIf(sipHash128(* EXCEPT pos) IN (
  SELECT sipHash128(* EXCEPT pos)
  FROM {{.Table}}
  WHERE month = {{.Month}} AND shard = {{.Shard}} AND NOT (pos > {{.Above}} AND pos <= {{.UpTo}})
    AND id IN (SELECT id FROM {{.Table}} WHERE month = {{.Month}} AND shard = {{.Shard}} AND pos > {{.Above}} AND pos <= {{.UpTo}}))))
FROM {{.Table}}
WHERE month = {{.Month}} AND shard = {{.Shard}} AND pos > {{.Above}} AND pos <= {{.UpTo}}
