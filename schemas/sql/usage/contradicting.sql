SELECT toString(id), toString(first)
FROM ({{template "usage/contradicting_ids" .}})
WHERE {{.Unmoved}}
FORMAT JSONCompactEachRow
