-- causes_once of what a bill is made of alone, in one level: columns that are not read are a fifth of the time.
SELECT type, provider, space,{{if .Customers}} tupleElement(first, 4) AS user_id,{{end}}
  min((ts, toUInt128(id), m.delta{{if .Customers}}, m.user_id{{end}})) AS first,
  toUnixTimestamp64Milli(tupleElement(first, 1)) AS t, tupleElement(first, 3) AS delta, true AS c, count() - 1 AS rep
FROM {{.Table}} AS m
{{- if .Space}}
-- The table's order finds the space, and the other columns are read once: ClickHouse would look at each condition by itself.
PREWHERE space = {space:String}{{end}}
WHERE {{.Where}}
GROUP BY type, provider, space, cause
