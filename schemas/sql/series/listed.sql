SELECT {{template "series/columns" ""}}
FROM (
  {{- if .Unlisted}}SELECT type, series, service, user_id, unit, labels, points, first, last FROM ({{.Unlisted}}){{end}}
  {{- if and .Unlisted .List}}
  UNION ALL
  {{end}}
  -- The row without a type says up to where the list reaches.
  {{- if .List}}SELECT type, series, service, user_id, unit, labels, points, first, last FROM {{.List}} WHERE type != '' AND {{.Where}}{{end}})
GROUP BY type, series
