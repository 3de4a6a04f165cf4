-- name: a label, or two. v: a value of it. worst: the series of the value that has most.
SELECT name, toString(count()), toString(max(n) AS worst)
FROM (
  {{- if .Pairs}}SELECT concat(tupleElement(a, 1), ' with ', tupleElement(b, 1)) AS name, (tupleElement(a, 2), tupleElement(b, 2)) AS v, count() AS n
  FROM (
    SELECT series, a, arrayZip(mapKeys(attributes), mapValues(attributes)) AS all
    FROM (SELECT series, attributes FROM ({{.Listed}}) WHERE {{.Where}})
    ARRAY JOIN arrayZip(mapKeys(attributes), mapValues(attributes)) AS a)
  ARRAY JOIN all AS b
  WHERE tupleElement(a, 1) < tupleElement(b, 1)
  {{- else}}SELECT tupleElement(l, 1) AS name, tupleElement(l, 2) AS v, count() AS n
  FROM (SELECT series, attributes FROM ({{.Listed}}) WHERE {{.Where}})
  ARRAY JOIN arrayZip(mapKeys(attributes), mapValues(attributes)) AS l
  {{- end}}
  GROUP BY name, v)
GROUP BY name
HAVING worst <= {{printf "%g" .Series}}
ORDER BY worst DESC, name
LIMIT {{.Limit}}
FORMAT JSONCompactEachRow
