INSERT INTO {{.Derived}} (month, shard, pos, type, series, service, user_id, unit, labels, points, first, last, listed)
SELECT {{.Month}}, {{.Shard}}, {{.To}}, type, series, service, user_id, unit, labels, points, first, last, listed
FROM (SELECT *, toUInt64(0) AS listed FROM ({{.Select}})
  UNION ALL
  SELECT '', toUInt128(0), '', '', '', CAST(map(), 'Map(String, String)'), CAST([], 'Array(String)'), toDateTime64(0, 9, 'UTC'), toDateTime64(0, 9, 'UTC'),
    (SELECT uniqExact(type, series) FROM (
      SELECT toString(type) AS type, series FROM {{.Derived}} WHERE month = {{.Month}} AND shard = {{.Shard}} AND type != ''
      UNION ALL SELECT toString(type) AS type, series FROM {{.Table}} WHERE {{.Rows}})))
WHERE throwIf((SELECT max(pos) FROM {{.Derived}} WHERE month = {{.Month}} AND shard = {{.Shard}}) != {{.Have}}, '{{.HeadMoved}}') = 0
