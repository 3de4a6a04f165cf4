-- The range of time prunes shards and parts.
SELECT seq AS seq, toUnixTimestamp64Nano(ts) AS t, {{.Says}} AS says, month AS m, shard AS s
FROM {{.Table}}
WHERE month IN ({{.Months}}) AND ts >= {{.FromSQL}} AND ts <= {{.ToSQL}} AND seq IN ({{.Seqs}})
FORMAT JSONEachRow
