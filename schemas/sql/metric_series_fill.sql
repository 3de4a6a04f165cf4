INSERT INTO {{.Derived}} (month, shard, pos, type, series, service, user_id, unit, labels, points, first, last)
SELECT {{.Month}}, {{.Shard}}, {{.To}}, type, series, service, user_id, unit, labels, points, first, last
FROM ({{.Select}}
  UNION ALL
  SELECT '', toUInt128(0), '', '', '', CAST(map(), 'Map(String, String)'), CAST([], 'Array(String)'), toDateTime64(0, 9, 'UTC'), toDateTime64(0, 9, 'UTC'))
WHERE throwIf((SELECT max(pos) FROM {{.Derived}} WHERE month = {{.Month}} AND shard = {{.Shard}}) != {{.Have}}, '{{.HeadMoved}}') = 0
