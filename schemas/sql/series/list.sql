SELECT type, service, user_id, unit, toJSONString(attributes), toJSONString(arraySort(arrayFilter(p -> p != '', kinds_of_points))),
  toString(toUnixTimestamp64Nano(since)), toString(toUnixTimestamp64Nano(until))
  {{- if .Keyed}}, toString(series){{end}}
FROM ({{.Listed}})
WHERE {{.Where}}
{{- if not .Keyed}}
ORDER BY type, service, user_id, unit, toString(attributes)
{{- end}}
LIMIT {{.Limit}}
FORMAT JSONCompactEachRow
