SELECT tupleElement(r, 3) AS month, tupleElement(r, 4) AS shard, tupleElement(r, 5) AS pos, tupleElement(r, 2) AS id,
  tupleElement(same[1], 2) AS first, tupleElement(same[1], 3) AS first_month, tupleElement(same[1], 4) AS first_shard,
  tupleElement(r, 6) != tupleElement(same[1], 6) AS other
FROM (
  SELECT {{if .Last}}arrayReverseSort(groupArray((toUInt128(id), id, month, shard, pos, {{.Said}}))){{else}}arraySort(groupArray(((ts, toUInt128(id)), id, month, shard, pos, {{.Said}}))){{end}} AS same
  FROM {{.Table}}
  WHERE {{.In}} AND {{.Found}} IN (
    SELECT {{.FoundBy}} FROM {{.Table}}
    WHERE {{.In}} AND {{.Found}} IN (SELECT {{.FoundBy}} FROM {{.Table}} WHERE {{.In}} AND ({{.New}}))
{{- if .InTime}}
      -- Copies have one time, so that parts of other times are not read.
      AND ts >= (SELECT min(ts) FROM {{.Table}} WHERE {{.In}} AND ({{.New}})) AND ts <= (SELECT max(ts) FROM {{.Table}} WHERE {{.In}} AND ({{.New}}))
{{- end}}
    GROUP BY {{.FoundBy}} HAVING count() > 1)
  GROUP BY {{.Once}} HAVING count() > 1)
ARRAY JOIN arrayFilter(x -> (tupleElement(x, 2), tupleElement(x, 4), tupleElement(x, 5)) != (tupleElement(same[1], 2), tupleElement(same[1], 4), tupleElement(same[1], 5)), same) AS r
