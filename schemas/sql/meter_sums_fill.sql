INSERT INTO {{.Derived}} (month, shard, pos, type, provider, space, user_id, n, repeats, delta, weighted, days)
SELECT {{.Month}}, {{.Shard}}, {{.To}}, type, provider, space, user_id, n, repeats, delta, weighted, days
FROM (
  SELECT type, provider, space, user_id, countIf(NOT again) AS n, countIf(again) AS repeats, sum(d) AS delta, sum(w) AS weighted,
    sumMap([day], [toUInt64(NOT again)], [toUInt64(again)], [d], [w]) AS days
  FROM (
    SELECT type, provider, space, user_id, (id, shard, pos) IN (SELECT id, shard, pos FROM {{.Repeats}} WHERE month = {{.Month}} AND shard = {{.Shard}}) AS again,
      toDayOfMonth(ts) AS day, if(again, toInt128(0), toInt128(delta)) AS d, d * ({{.EndMs}} - toUnixTimestamp64Milli(ts)) AS w
    FROM {{.Table}} WHERE month = {{.Month}} AND shard = {{.Shard}} AND pos > {{.From}} AND pos <= {{.To}})
  GROUP BY type, provider, space, user_id
  UNION ALL
  SELECT '', '', '', '', toUInt64(0), toUInt64(0), toInt128(0), toInt128(0),
    CAST(([], [], [], [], []), 'Tuple(Array(UInt8), Array(UInt64), Array(UInt64), Array(Int128), Array(Int128))'))
WHERE throwIf((SELECT max(pos) FROM {{.Derived}} WHERE month = {{.Month}} AND shard = {{.Shard}}) != {{.From}}, '{{.HeadMoved}}') = 0
  AND throwIf((SELECT max(pos) FROM {{.Repeats}} WHERE month = {{.Month}} AND shard = {{.Shard}} AND id = toUUID('00000000-0000-0000-0000-000000000000')) < {{.To}}, '{{.HeadMoved}}') = 0
