-- The month and the range of time prune shards and parts.
SELECT DISTINCT concat(toString(toUnixTimestamp64Nano(ts)), ' ', toString(id))
FROM {{.Table}}
WHERE month = {{.Month}} AND ts >= fromUnixTimestamp64Nano({{.FromNs}}, 'UTC') AND ts <= fromUnixTimestamp64Nano({{.ToNs}}, 'UTC') AND id IN ({{.IDs}})
FORMAT TSV
