SELECT toString(id), toString(shard), toString(pos), toString(first), toString(first_shard)
FROM ({{template "usage/contradicting_ids" .}})
WHERE {{.Unmoved}}
FORMAT JSONCompactEachRow
