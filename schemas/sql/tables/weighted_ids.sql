SELECT sumWithOverflow(_hash), sumWithOverflow(_hash * greatest(pos, toUInt64({{.Least}})))
FROM (
  SELECT pos, {{.HashSQL}} AS _hash
  FROM {{.Table}}
  WHERE month = {{.Month}} AND shard = {{.Shard}} AND pos <= {{.UpTo}})
