SELECT name, toString(v), toString(n)
FROM (
  {{- if .NameSQL}}SELECT {{.NameSQL}} AS name, toUInt64(0) AS v, count() AS n
  FROM ({{.Listed}})
  {{- else}}SELECT tupleElement(l, 1) AS name, uniqExact(tupleElement(l, 2)) AS v, count() AS n
  FROM ({{.Listed}})
  ARRAY JOIN arrayZip(mapKeys(attributes), mapValues(attributes)) AS l
  {{- end}}
  WHERE {{.Where}}
  GROUP BY name)
ORDER BY n DESC, name
LIMIT {{.Limit}}
FORMAT JSONCompactEachRow
