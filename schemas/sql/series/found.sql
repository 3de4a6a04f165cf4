-- Series become texts only once they are chosen.
SELECT toString(countIf(allowed)), toString(countIf(chosen)), toString(uniqExactIf(({{.KeysSQL}}), chosen)), toJSONString(groupUniqArrayArrayIf(kinds_of_points, chosen)),
  toJSONString(arraySort(groupUniqArrayArrayIf({{.Labels}})(mapKeys(attributes), allowed))),
  toJSONString(arrayMap(x -> [toString(tupleElement(x, 1)), tupleElement(x, 2), tupleElement(x, 3), tupleElement(x, 4), toJSONString(tupleElement(x, 5))], groupArrayIf({{.Names}})((series, service, user_id, unit, attributes), chosen))),
  -- Places that are as many as are told may be more: then none are.
  toJSONString({{if .Placed}}if(maxIf(length(places), chosen) >= {{.Places}}, [], groupUniqArrayArrayIf({{.Places}})(places, chosen)){{else}}[]{{end}}),
  toJSONString({{if .Placed}}groupArrayArray(reach){{else}}[]{{end}})
FROM (SELECT *, type != '' AND ({{.Within}}) AS allowed, allowed AND ({{.Where}}) AS chosen FROM ({{.Listed}}))
FORMAT JSONCompactEachRow
