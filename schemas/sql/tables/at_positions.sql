SELECT month, shard, pos, count(), uniqExact(id), {{.IDSumSQL}}
FROM {{.Table}}
WHERE {{.Where}} AND (shard, pos) IN ({{.Positions}})
GROUP BY month, shard, pos
