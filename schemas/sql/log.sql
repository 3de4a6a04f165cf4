CREATE TABLE IF NOT EXISTS {{.Table}}
(
{{template "columns.sql" .}}
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
{{template "partition.sql"}}
ORDER BY (ts, toUInt128(id))
SETTINGS
{{template "settings.sql"}}
COMMENT '{{.Mark}}'