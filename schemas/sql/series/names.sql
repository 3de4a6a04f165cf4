SELECT toString(series), service, user_id, unit, toJSONString(attributes)
FROM ({{.Listed}})
WHERE {{.Where}}
FORMAT JSONCompactEachRow
