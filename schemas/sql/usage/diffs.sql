SELECT toString(toUnixTimestamp64Nano(ts)), toString(id), type, provider, space, user_id, cause, toString(delta)
FROM ({{.Rows}})
WHERE {{.Where}}
{{- if .After}} AND (ts, toUInt128(id)) > (fromUnixTimestamp64Nano({ns:Int64}, 'UTC'), toUInt128({id:UUID})){{end}} AND {{.Unmoved}}
ORDER BY ts, toUInt128(id)
LIMIT {{.Limit}}
FORMAT JSONCompactEachRow
