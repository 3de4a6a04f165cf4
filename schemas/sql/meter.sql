CREATE TABLE IF NOT EXISTS {{.Table}}
(
{{template "columns.sql" .}}
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX i_cause cause TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
{{template "partition.sql"}}
ORDER BY (type, provider, space, ts, toUInt128(id))
SETTINGS
  -- A bill of one space reads 10,240 rows in ten parts, and 131,072 with the default.
  index_granularity = 1024,
{{template "settings.sql"}}
COMMENT '{{.Mark}}'