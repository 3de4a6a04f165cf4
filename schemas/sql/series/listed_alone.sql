-- That the list reaches as far as it did is not asserted, which takes 8 ms: reach says how far it does.
SELECT {{if .SinceSQL}}{{template "series/columns" (printf "last > %s" .SinceSQL)}}{{else}}{{template "series/columns" ""}}{{end}},
  {{if .Places}}groupUniqArrayIf({{.Places}})([toUInt64(month), shard], type != ''){{else}}[]{{end}} AS places,
  groupUniqArrayIf([toUInt64(month), shard, pos], type = '') AS reach
FROM {{.List}}
WHERE type = '' OR {{.Where}}
GROUP BY type, series
{{- if .SinceSQL}}
HAVING type = '' OR max(last) > {{.SinceSQL}}
{{- end}}
