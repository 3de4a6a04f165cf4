{{- if or .Marks .Unmarked -}}
SELECT DISTINCT id, shard, pos, first, first_shard
FROM (
  {{- if .Marks}}SELECT id, shard, pos, first, first_shard FROM {{.Marks}} WHERE other{{end}}
  {{- if and .Marks .Unmarked}}
  UNION ALL
  {{end}}
  {{- if .Unmarked}}SELECT id, shard, pos, first, first_shard FROM ({{.Unmarked}}) WHERE other{{end}})
ORDER BY id, first, shard, pos
LIMIT {{.Limit}}
{{- else -}}
-- A statement of its columns that has no rows: neither marks nor rows that were not examined are there.
SELECT toUUID('00000000-0000-0000-0000-000000000000') AS id, toUInt64(0) AS shard, toUInt64(0) AS pos, toUUID('00000000-0000-0000-0000-000000000000') AS first, toUInt64(0) AS first_shard
WHERE 0
{{- end}}
