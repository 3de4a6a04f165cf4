WITH CAST([{{.Shards}}], 'Array(UInt64)') AS _shards
SELECT month, shard, sumWithOverflow(_hash), sumWithOverflow(_hash * greatest(pos, transform(shard, _shards, CAST([{{.Least}}], 'Array(UInt64)'), toUInt64(0))))
FROM (
  SELECT month, shard, pos, {{.HashSQL}} AS _hash
  FROM {{.Table}}
  WHERE {{.Where}} AND pos <= transform(shard, _shards, CAST([{{.UpTo}}], 'Array(UInt64)'), toUInt64(0)))
GROUP BY month, shard
