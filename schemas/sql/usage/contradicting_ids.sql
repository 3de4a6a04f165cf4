{{- if or .Marks .Unmarked -}}
SELECT DISTINCT id, first
FROM (
  {{- if .Marks}}SELECT id, first FROM {{.Marks}} WHERE other{{end}}
  {{- if and .Marks .Unmarked}}
  UNION ALL
  {{end}}
  {{- if .Unmarked}}SELECT id, first FROM ({{.Unmarked}}) WHERE other{{end}})
ORDER BY id, first
LIMIT {{.Limit}}
{{- else -}}
-- A statement of its columns that has no rows: neither marks nor rows that were not examined are there.
SELECT toUUID('00000000-0000-0000-0000-000000000000') AS id, toUUID('00000000-0000-0000-0000-000000000000') AS first
WHERE 0
{{- end}}
